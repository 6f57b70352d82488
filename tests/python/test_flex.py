"""fovea.torch.flex_attention against PyTorch's eager flex_attention, and its gradients against masked dense attention."""

import pytest

torch = pytest.importorskip("torch")
from torch.nn.attention.flex_attention import (  # noqa: E402
    AuxRequest,
    BlockMask,
    and_masks,
    create_block_mask,
    create_mask,
    flex_attention,
    or_masks,
)

import fovea.torch  # noqa: E402

N = 200  # no multiple of a block
B, H = 2, 4


def causal(b, h, q, k):
    return q >= k


def window(left, right):
    return lambda b, h, q, k: (q - k <= left) & (k - q <= right)


def table(values):
    return torch.tensor(values)


documents = torch.arange(N) // 37
uneven = torch.searchsorted(torch.tensor([5, 80, 81, 140]), torch.arange(N), right=True)
lengths = table([150, 63])
left_padding = table([0, 41])
random_blocks = torch.rand(N // 16 + 1, N // 16 + 1, generator=torch.Generator().manual_seed(3)) < 0.3
random_bits = torch.rand(N, N, generator=torch.Generator().manual_seed(4)) < 0.4
by_head = table([3, 17, 64, 199])
image = torch.arange(N) % 14, torch.arange(N) // 14

MASKS = {
    "full": lambda b, h, q, k: q >= 0,
    "causal": causal,
    "anticausal": lambda b, h, q, k: q <= k,
    "strict": lambda b, h, q, k: q > k,
    "diagonal": lambda b, h, q, k: q == k,
    "sliding": window(17, 0),
    "both sides": window(9, 30),
    "long window": window(150, 150),
    "causal sliding": and_masks(causal, window(40, 0)),
    "prefix": or_masks(causal, lambda b, h, q, k: k < 33),
    "prefix by batch": or_masks(causal, lambda b, h, q, k: k < lengths[b]),
    "documents": lambda b, h, q, k: documents[q] == documents[k],
    "causal documents": and_masks(causal, lambda b, h, q, k: documents[q] == documents[k]),
    "uneven documents": lambda b, h, q, k: uneven[q] == uneven[k],
    "documents with windows": and_masks(lambda b, h, q, k: uneven[q] == uneven[k], window(20, 20)),
    "lengths": lambda b, h, q, k: k < lengths[b],
    "causal lengths": and_masks(causal, lambda b, h, q, k: k < lengths[b]),
    "left padding": and_masks(causal, lambda b, h, q, k: k >= left_padding[b]),
    "dilated": lambda b, h, q, k: (q - k).abs() % 3 == 0,
    "dilated window": lambda b, h, q, k: ((q - k).abs() % 4 == 0) & ((q - k).abs() <= 40),
    "strided": or_masks(and_masks(causal, window(16, 0)), and_masks(causal, lambda b, h, q, k: (q - k) % 16 == 0)),
    "fixed": and_masks(causal, lambda b, h, q, k: (q // 16 == k // 16) | (k % 16 >= 14)),
    "block window": lambda b, h, q, k: (q // 32 - k // 32).abs() <= 1,
    "chunks": and_masks(causal, lambda b, h, q, k: q // 48 == k // 48),
    "global tokens": or_masks(window(8, 8), lambda b, h, q, k: (q < 3) | (k < 3)),
    "random blocks": lambda b, h, q, k: random_blocks[q // 16, k // 16],
    "bigbird": or_masks(or_masks(lambda b, h, q, k: (q // 16 - k // 16).abs() <= 1, lambda b, h, q, k: (q < 16) | (k < 16)),
                        lambda b, h, q, k: random_blocks[q // 16, k // 16]),
    "random bits": lambda b, h, q, k: random_bits[q, k],
    "windows by head": lambda b, h, q, k: (q - k).abs() <= by_head[h],
    "causal for even heads": lambda b, h, q, k: (h % 2 == 1) | (q >= k),
    "heads and batches": lambda b, h, q, k: (k < lengths[b]) & ((q - k).abs() <= by_head[h]),
    "sinks": and_masks(causal, or_masks(window(30, 0), lambda b, h, q, k: k < 4)),
    "neighbourhood": lambda b, h, q, k: ((image[0][q] - image[0][k]).abs() <= 2) & ((image[1][q] - image[1][k]).abs() <= 2),
    "rows and columns": lambda b, h, q, k: (image[0][q] == image[0][k]) | (image[1][q] == image[1][k]),
    "rows that see nothing": lambda b, h, q, k: (q % 7 != 3) & (k <= q),
}


def tensors(heads=H, kv_heads=H, queries=N, keys=N, d=16, dv=16):
    torch.manual_seed(2)
    make = lambda h, n, f: torch.randn(B, h, n, f, requires_grad=True)
    return make(heads, queries, d), make(kv_heads, keys, d), make(kv_heads, keys, dv)


def eager(q, k, v, *args, **kwargs):
    """PyTorch's own, which has no gradients on CPUs."""
    return flex_attention(q.detach(), k.detach(), v.detach(), *args, **kwargs)


def dense(q, k, v, allowed, bias=0.0):
    """Masked attention in float64; rows that see nothing give 0."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    scores = (q.double() @ k.mT / q.shape[-1] ** 0.5 + bias).masked_fill(~allowed, -torch.inf)
    weights = scores.softmax(-1).masked_fill(~allowed.any(-1, keepdim=True), 0)
    return weights @ v


def assert_gradients(found, wanted, inputs):
    upstream = torch.randn_like(found)
    for a, b in zip(torch.autograd.grad(found, inputs, upstream), torch.autograd.grad(wanted, inputs, upstream.double())):
        torch.testing.assert_close(a.double(), b.double(), atol=3e-5, rtol=1e-4)


def test_there_are_at_least_thirty_masks():
    assert len(MASKS) >= 30


@pytest.mark.parametrize("name", MASKS)
def test_masks_equal_eager_flex_attention_and_their_gradients_dense_attention(name):
    q, k, v = tensors()
    mask = create_block_mask(MASKS[name], B, H, N, N, device="cpu", BLOCK_SIZE=32 if len(name) % 2 else 128)
    found = fovea.torch.flex_attention(q, k, v, block_mask=mask)
    wanted = eager(q, k, v, block_mask=mask)
    torch.testing.assert_close(found, wanted, atol=2e-5, rtol=1e-4)
    allowed = create_mask(MASKS[name], B, H, N, N, device="cpu")
    assert_gradients(found, dense(q, k, v, allowed), (q, k, v))


def test_masks_that_hold_for_all_batches_and_heads():
    q, k, v = tensors(kv_heads=2, queries=90, keys=N, dv=8)
    mask = create_block_mask(window(20, 5), None, None, 90, N, device="cpu")
    found = fovea.torch.flex_attention(q, k, v, block_mask=mask, enable_gqa=True, scale=0.3)
    wanted = eager(q, k, v, block_mask=mask, enable_gqa=True, scale=0.3)
    torch.testing.assert_close(found, wanted, atol=2e-5, rtol=1e-4)


def test_blocks_given_as_lists():
    counts = torch.tensor([[[1, 2]]], dtype=torch.int32)
    indices = torch.tensor([[[[1, 0], [0, 1]]]], dtype=torch.int32)
    mask = BlockMask.from_kv_blocks(counts, indices, BLOCK_SIZE=128, seq_lengths=(N, N))
    q, k, v = tensors()
    block = torch.arange(N) // 128
    allowed = (block[:, None] == 1) | (block == 1)  # which PyTorch's eager path would not read
    torch.testing.assert_close(fovea.torch.flex_attention(q, k, v, block_mask=mask).double(), dense(q, k, v, allowed),
                               atol=2e-5, rtol=1e-4)


def test_mask_mod_is_evaluated_once():
    calls = []

    def counted(b, h, q, k):
        calls.append(1)
        return q >= k

    mask = create_block_mask(causal, None, None, N, N, device="cpu")
    mask.mask_mod = counted
    q, k, v = tensors()
    first = fovea.torch.flex_attention(q, k, v, block_mask=mask)
    made = len(calls)
    assert made > 0 and torch.equal(first, fovea.torch.flex_attention(q, k, v, block_mask=mask))
    assert len(calls) == made


slopes = torch.tensor([0.5, 0.25, 0.1, 0.01])


def alibi(score, b, h, q, k):
    return score - slopes[h] * (q - k).abs()


def causal_alibi(score, b, h, q, k):
    return score + (k - q) * torch.exp2(-(h + 1) * 8.0 / H)


def softcap(score, b, h, q, k):
    return 3.0 * torch.tanh(score / 3.0)


@pytest.mark.parametrize("score_mod,mask_mod", [(alibi, None), (alibi, window(30, 30)), (causal_alibi, causal),
                                                (softcap, None), (softcap, causal), (lambda s, b, h, q, k: s, causal)])
def test_score_mods_that_are_known(score_mod, mask_mod):
    q, k, v = tensors()
    mask = None if mask_mod is None else create_block_mask(mask_mod, None, None, N, N, device="cpu")
    found = fovea.torch.flex_attention(q, k, v, score_mod, mask)
    wanted = eager(q, k, v, score_mod, mask)
    torch.testing.assert_close(found, wanted, atol=3e-5, rtol=1e-4)


def test_score_mods_given_as_a_spec_have_gradients():
    q, k, v = tensors()
    trained = slopes.clone().requires_grad_()
    bias = torch.randn(H, 1, N, requires_grad=True)
    allowed = create_mask(causal, None, None, N, N, device="cpu")
    distance = (torch.arange(N)[:, None] - torch.arange(N)).abs()
    mask = create_block_mask(causal, None, None, N, N, device="cpu")
    found = fovea.torch.flex_attention(q, k, v, fovea.torch.score("alibi", slopes=trained, bias=bias), mask)
    wanted = dense(q, k, v, allowed, bias.double() - trained.double()[:, None, None] * distance)
    torch.testing.assert_close(found.double(), wanted, atol=3e-5, rtol=1e-4)
    assert_gradients(found, wanted, (q, k, v, trained, bias))


def relative(score, b, h, q, k):
    return score + (q - k)


def trained_alibi(score, b, h, q, k, slopes=torch.nn.Parameter(slopes.clone())):
    return score - slopes[h] * (q - k).abs()


@pytest.mark.parametrize("score_mod", [relative, trained_alibi, causal_alibi, lambda s, b, h, q, k: s * 2])
def test_other_score_mods_are_refused(score_mod):
    with pytest.raises(ValueError, match="is none that Fovea knows"):
        fovea.torch.flex_attention(*tensors(), score_mod)


def test_lse():
    q, k, v = tensors()
    mask = create_block_mask(causal, None, None, N, N, device="cpu")
    output, aux = fovea.torch.flex_attention(q, k, v, block_mask=mask, return_aux=AuxRequest(lse=True))
    _, wanted = eager(q, k, v, block_mask=mask, return_aux=AuxRequest(lse=True))
    torch.testing.assert_close(aux.lse, wanted.lse, atol=2e-5, rtol=1e-4)


def test_bad_calls():
    q, k, v = tensors()
    with pytest.raises(ValueError, match="enable_gqa"):
        fovea.torch.flex_attention(q, k[:, :2], v[:, :2])
    with pytest.raises(ValueError, match="wanted the same"):
        fovea.torch.flex_attention(q, k, v, block_mask=create_block_mask(causal, None, None, 64, 64, device="cpu"))
    with pytest.raises(ValueError, match="unknown tensor 'slope'"):
        fovea.torch.score("alibi", slope=slopes)
    with pytest.raises(ValueError, match="did you mean"):
        fovea.torch.score("alibbi")
    with pytest.raises(ValueError, match="max_scores"):
        fovea.torch.flex_attention(q, k, v, return_aux=AuxRequest(max_scores=True))
