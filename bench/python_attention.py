#!/usr/bin/env python3
"""Fovea's attention inside PyTorch against PyTorch's own, in one process, interleaved: the cases of docs/python.md.

    make test-python && build/venv/bin/python bench/python_attention.py --threads 1 2 --write docs/benchmarks-python.md

For each case every variant runs in turn, again and again for the budget; each figure is the best of its runs. The ratio is
the best time of the others divided by Fovea's.
"""

import argparse
import copy
import math
import sys
import warnings
from dataclasses import dataclass
from typing import Callable, Dict

import torch
import torch.nn.functional as F
from torch.nn.attention.flex_attention import create_block_mask, flex_attention

import fovea
import fovea.torch
import fovea.transformers
from timing import timed
from torch_cases import forward_and_back

HEADS = 8


@dataclass
class Case:
    title: str
    target: str
    build: Callable[[], Dict[str, Callable[[], None]]]  # variants: name -> step; "fovea" is ours
    inner: int = 1  # calls inside a step
    above: str = ""  # the variant whose time is subtracted from Fovea's (the kernel alone): the result is in microseconds


def tensors(n, d, grad, heads=HEADS, batch=1):
    return [torch.randn(batch, heads, n, d).requires_grad_(grad) for _ in range(3)]


def step_of(op, leaves, backward):
    if backward:
        return forward_and_back(leaves, op)

    def step():
        with torch.no_grad():
            op()

    return step


class Nothing(torch.autograd.Function):
    """What PyTorch takes for a function written in Python that keeps its tensors and computes nothing."""

    @staticmethod
    def forward(ctx, q, k, v):
        out = torch.empty_like(q)
        ctx.save_for_backward(q, k, v, out)
        return out

    @staticmethod
    def backward(ctx, d_out):
        return tuple(torch.empty_like(x) for x in ctx.saved_tensors[:3])


def overhead(backward):
    """A call of PyTorch's against the same work asked of C++ directly: what Python, dispatch and autograd cost."""
    calls = 250

    def build():
        q, k, v = tensors(8, 64, backward, heads=1)
        gradient = torch.randn(1, 1, 8, 64)

        def repeated(op):
            def step():  # results are freed, as those of a training are
                for _ in range(calls):
                    if backward:
                        torch.autograd.grad(op(q, k, v), (q, k, v), gradient)
                    else:
                        op(q, k, v)

            return step

        steps = {"fovea": repeated(fovea.torch.attention), "kernel": kernel(q, k, v, gradient, backward, calls),
                 "SDPA": repeated(F.scaled_dot_product_attention)}
        if backward:
            steps["a Function that computes nothing"] = repeated(Nothing.apply)
        return steps

    return Case(f"overhead of a call, B=H=1, N=8, D=64, {'both' if backward else 'forward'}",
                f"≤ {40 if backward else 15} µs", build, calls, "kernel")


def kernel(q, k, v, gradient, backward, calls):
    """The same kernels on one call `calls` times as large in the batch, which pays the overhead once."""
    many = [x.detach().expand(calls, 1, 8, 64).contiguous().requires_grad_(backward) for x in (q, k, v)]
    upstream = gradient.expand(calls, 1, 8, 64).contiguous()
    if backward:
        return lambda: torch.autograd.grad(fovea.torch.attention(*many), many, upstream)
    return step_of(lambda: fovea.torch.attention(*many), many, False)


def dense(n, d, causal, backward):
    def build():
        q, k, v = tensors(n, d, backward)
        spec = "scaled_dot / causal" if causal else "scaled_dot"
        return {"fovea": step_of(lambda: fovea.torch.attention(q, k, v, spec), (q, k, v), backward),
                "SDPA": step_of(lambda: F.scaled_dot_product_attention(q, k, v, is_causal=causal), (q, k, v), backward)}

    return Case(f"{'causal' if causal else 'full'} {'both' if backward else 'forward'}, D={d}, N={n}",
                "≥ 1.3" if causal else "≥ 1.1", build)


def window(b, h, i, j):
    return (i - j <= 256) & (j - i <= 256)


def documents(b, h, i, j):
    return i // 700 == j // 700


def bigbird(b, h, i, j):
    q, k = i // 64, j // 64
    return ((q - k).abs() <= 1) | (q == 0) | (k == 0) | ((q * 7919 + k * 104729) % 64 < 2)


PATTERNS = {"window(256)": window, "documents of 700": documents, "BigBird blocks of 64": bigbird}


def sparse(name, n, backward):
    mod = PATTERNS[name]

    def build():
        q, k, v = tensors(n, 64, backward)
        blocks = create_block_mask(mod, None, None, n, n, device="cpu", BLOCK_SIZE=64)
        steps = {"fovea": step_of(lambda: fovea.torch.flex_attention(q, k, v, block_mask=blocks), (q, k, v), backward)}
        index = torch.arange(n)
        mask = mod(0, 0, index[:, None], index)
        steps["SDPA with a mask"] = step_of(lambda: F.scaled_dot_product_attention(q, k, v, attn_mask=mask), (q, k, v), backward)
        if n <= 4096:
            scores = lambda: (q @ k.mT / 8).masked_fill(~mask, -math.inf).softmax(-1) @ v
            steps["eager"] = step_of(scores, (q, k, v), backward)
        if not backward:
            compiled = torch.compile(flex_attention)
            steps["FlexAttention"] = step_of(lambda: compiled(q, k, v, block_mask=blocks), (q, k, v), False)
        return steps

    target = "≥ 1.5 against FlexAttention" if not backward else "≥ 8" if n <= 4096 else "≥ 30"
    return Case(f"{name} {'both' if backward else 'forward'}, D=64, N={n}", target, build)


def training_step(make, config, implementation, batch, tokens):
    """One step of AdamW; the model is made when it is first called, so that a variant left out takes no memory."""
    made = []

    def step():
        if not made:
            own = copy.deepcopy(config)
            own._attn_implementation = implementation
            torch.manual_seed(0)
            model = make(own).train()
            made.extend((model, torch.optim.AdamW(model.parameters(), 1e-5), torch.randint(10, own.vocab_size, (batch, tokens))))
        model, optimizer, ids = made
        optimizer.zero_grad()
        model(ids, labels=ids).loss.backward()
        optimizer.step()

    return step


def fine_tuning(title, target, make, config, batch, tokens):
    def build():
        fovea.transformers.register()
        return {name: training_step(make, config, name, batch, tokens) for name in ("fovea", "sdpa", "eager")}

    return Case(title, target, build)


def models():
    import transformers as T

    bert = T.BertConfig()
    mistral = T.MistralConfig(vocab_size=8000, hidden_size=512, intermediate_size=1536, num_hidden_layers=4,
                              num_attention_heads=8, num_key_value_heads=8, sliding_window=512)
    return [fine_tuning("fine-tuning step, BERT base, 8 × 256", "≥ 1", T.BertForMaskedLM, bert, 8, 256),
            fine_tuning("training step, Mistral of 4 layers, width 512, window 512, 1 × 4096", "≥ 2", T.MistralForCausalLM,
                        mistral, 1, 4096)]


def all_cases():
    cases = [overhead(False), overhead(True)]
    cases += [dense(n, d, causal, backward) for d in (64, 128) for n in (512, 2048) for causal in (False, True)
              for backward in (False, True)]
    cases += [sparse(name, n, backward) for name in PATTERNS for n in (4096, 16384) for backward in (False, True)]
    return cases + models()


def measure(steps, budget):
    """Seconds of each variant, run in turn; the first round makes what is made once."""
    best = {name: timed(step) for name, step in steps.items()}
    spent, rounds = 0.0, 0
    while spent < budget * len(steps) and (rounds < 3 or sum(best.values()) < budget):
        for name, step in steps.items():
            seconds = timed(step)
            best[name] = min(best[name], seconds)
            spent += seconds
        rounds += 1
    return best


def shown(seconds):
    return f"{seconds:.3g} s" if seconds >= 1 else f"{seconds * 1e3:.3g} ms"


def row(case, budget, left_out):
    best = measure({name: step for name, step in case.build().items() if name not in left_out}, budget)
    if case.above:
        above = (best["fovea"] - best[case.above]) / case.inner * 1e6
        others = [f"{name} {seconds / case.inner * 1e6:.1f} µs" for name, seconds in best.items() if name not in ("fovea", case.above)]
        told = "; ".join([f"{above:.1f} µs above the kernel", *others])
        return f"| {case.title} | {best['fovea'] / case.inner * 1e6:.1f} µs | {told} | {case.target} |"
    others = {name: seconds for name, seconds in best.items() if name != "fovea"}
    told = ", ".join(f"{name} {shown(seconds)} ({seconds / best['fovea']:.2f}×)" for name, seconds in others.items())
    return f"| {case.title} | {shown(best['fovea'])} | {told} | {case.target} |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--filter", default="", help="only cases whose title contains this")
    parser.add_argument("--budget", type=float, default=2.0, help="seconds for each variant")
    parser.add_argument("--without", nargs="+", default=[], help="variants that are left out, such as eager")
    parser.add_argument("--write", default="", help="a file for the tables")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    lines = ["# Benchmarks of the Python package", "",
             "Written by `bench/python_attention.py`. Fovea and PyTorch run the same case alternately in one process; each figure is the "
             "best of its runs. In parentheses the time of the other divided by Fovea's: above 1, Fovea is faster.", "",
             f"Fovea {fovea.__version__}, PyTorch {torch.__version__}.", ""]
    for threads in arguments.threads:
        torch.set_num_threads(threads)
        lines += [f"## {threads} thread{'s' * (threads > 1)}", "", "| case | Fovea | others | target |", "|---|---|---|---|"]
        for case in all_cases():
            if arguments.filter in case.title:
                lines.append(row(case, arguments.budget, arguments.without))
                print(lines[-1], file=sys.stderr, flush=True)
        lines.append("")
    text = "\n".join(lines)
    if arguments.write:
        with open(arguments.write, "w") as file:
            file.write(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
