"""Random calls, most of them senseless: each ends with a result or a ValueError, and never with the process."""

import random

import numpy as np
import pytest

import fovea

SCORES = ["dot", "scaled_dot", "scaled_dot(0.5)", "cosine(0.1)", "bilinear", "additive", "concat", "location", "scaled_dot(0)",
          "scaled_dot(-1)", "dot + soft_cap(2)", "dot + alibi", "dot + bias", "dot + sink", "dot + relative(8,20)",
          "dot + gaussian(2)", "dot + relative(0,0)", "x"]
PATTERNS = ["full", "causal", "causal(top_left)", "window(3,1)", "window(2,2,3)", "window(0,0)", "strided(2)", "strided(0)",
            "fixed(4,2)", "block_window(4,1,1)", "global(0)", "global(99)", "random_blocks(2,3,1)", "lengths(3)", "lengths(2,3)",
            "documents(2,3)", "within(3,4; causal)", "heads(causal; full)", "layout(2;11,01)", "layout(1;1)", "predicate(x)",
            "query_lengths(1,2)", "window(1,1) | global(0) & causal", "(", "window(99999999999,0)",
            "random_blocks(1,2000000000,1)"]
SELECTIONS = ["soft", "soft(0.5)", "hard", "gumbel(0.5)", "gumbel(0)", "argmax", "top_k(2)", "top_k(0)", "top_k(99)", "sparsemax",
              "sigmoid", "z"]
SENSIBLE = 0.7  # of the numbers


def random_call(draw):
    """Arrays, spec and keyword arguments."""
    batch, heads, kv_heads = (draw.choice([0, 1, 1, 2, 3, 4]) for _ in range(3))
    if draw.random() < SENSIBLE:
        heads = kv_heads = draw.choice([1, 2, 4])
    queries, keys = draw.choice([0, 1, 3, 7, 50]), draw.choice([0, 1, 3, 7, 50])
    d, dv = draw.choice([0, 1, 3, 8, 17]), draw.choice([0, 1, 5, 16])
    dk = d if draw.random() < 0.9 else 4
    generator = np.random.default_rng(draw.randrange(2**30))
    make = lambda *shape: (generator.standard_normal(shape) * draw.choice([1, 1, 1e4, np.nan, np.inf])).astype(np.float32)
    q, k, v = make(batch, heads, queries, d), make(batch, kv_heads, keys, dk), make(batch, kv_heads, keys, dv)
    score = draw.choice(SCORES)
    arguments = {}

    def maybe(name, chance, *shape):
        if draw.random() < chance:
            arguments[name] = make(*shape)

    full = (batch, heads, queries, keys)
    maybe("bias", 0.9 if "bias" in score else 0.1, *draw.choice([full, full[2:], (1, 1, 1, keys), (heads, 1, 1), (2, 2)]))
    maybe("slopes", 0.1, heads)
    maybe("sink", 0.1, heads)
    maybe("relative", 0.9 * ("relative" in score), 8, heads)
    maybe("position", 0.9 * ("gaussian" in score), *full[:3])
    wide = {"bilinear": (d, dk), "additive": (6, dk), "concat": (6, dk + d), "location": (60, d)}
    if score in wide:
        maybe("W", 0.9, *wide[score])
    maybe("U", 0.9 * (score == "additive"), 6, d)
    maybe("score_vector", 0.9 * (score in ("additive", "concat")), 6)
    maybe("b", 0.5 * (score in ("additive", "concat")), 6)
    if draw.random() < 0.3:
        shape = draw.choice([full, full[2:], (batch, 1, 1, keys), (keys,), (1, heads, 1, keys)])
        arguments["mask"] = generator.random(shape) < 0.5
    if draw.random() < 0.1:
        arguments["lengths"] = [draw.choice([0, 1, 3, -1, 100]) for _ in range(batch + draw.choice([0, 0, 1]))]
    if draw.random() < 0.1:
        arguments["documents"] = [max(0, queries - 2), min(2, queries)]
    if draw.random() < 0.2:
        arguments["weights"] = draw.choice([True, ([0], [0]), (None, [0]), ([1, 0], None), ([-1], None)])
    arguments["return_lse"] = draw.random() < 0.2
    arguments["training"] = draw.random() < 0.4
    return (q, k, v), f"{score} / {draw.choice(PATTERNS)} / {draw.choice(SELECTIONS)}", arguments


def test_arrays():
    draw = random.Random(1)
    computed = 0
    for _ in range(4000):
        arrays, spec, arguments = random_call(draw)
        arrays = [x[..., ::-1] if draw.random() < 0.2 else x[:, :, ::-1] if draw.random() < 0.2 else x for x in arrays]
        try:
            fovea.attention(*arrays, spec, **arguments)
            computed += 1
        except (ValueError, MemoryError):
            pass
    assert computed > 200


def test_tensors_and_their_gradients():
    torch = pytest.importorskip("torch")
    import fovea.torch

    draw = random.Random(2)
    computed = 0
    for _ in range(2500):
        arrays, spec, arguments = random_call(draw)
        tensors = [torch.from_numpy(x).requires_grad_() for x in arrays]
        arguments = {name: torch.from_numpy(x) if isinstance(x, np.ndarray) else x for name, x in arguments.items()}
        for x in arguments.values():
            if isinstance(x, torch.Tensor) and x.is_floating_point():
                x.requires_grad_()
        try:
            found = fovea.torch.attention(*tensors, spec, **arguments)
            (found if isinstance(found, torch.Tensor) else found.output).sum().backward()
            computed += 1
        except (ValueError, MemoryError):
            pass
    assert computed > 100
