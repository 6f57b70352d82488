"""fovea.torch on tensors, modes and transforms that are out of the ordinary: right numbers or a clear error."""

import copy
import gc
import io
import pickle

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402
from torch.autograd import forward_ad  # noqa: E402
from torch.nn.attention.flex_attention import create_block_mask  # noqa: E402
from torch.utils.checkpoint import checkpoint  # noqa: E402

import fovea.torch  # noqa: E402

attention = fovea.torch.attention
CAUSAL = torch.ones(9, 9, dtype=torch.bool).tril()


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(3)


def tensors(grad=False):
    return [torch.randn(2, 4, 9, 8, requires_grad=grad) for _ in range(3)]


def sdpa64(q, k, v, mask=None):
    return F.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=mask)


def assert_equal(found, wanted):
    torch.testing.assert_close(found.double(), wanted.double(), atol=2e-6, rtol=1e-5)


def stored_with_the_other_sign(x):
    found = torch.complex(torch.zeros_like(x), -x).conj().imag
    assert found.is_neg() and torch.equal(found, x)
    return found


@pytest.mark.parametrize("options", [{}, {"mask": CAUSAL}, {"bias": torch.zeros(9, 9)}])
def test_tensors_stored_with_the_other_sign(options):
    q, k, v = tensors()
    for which in range(3):
        given = [stored_with_the_other_sign(x) if i == which else x for i, x in enumerate((q, k, v))]
        assert torch.equal(attention(*given, **options), attention(q, k, v, **options))
    assert torch.equal(attention(q, k, v, bias=stored_with_the_other_sign(CAUSAL.float())), attention(q, k, v, bias=CAUSAL.float()))
    np.testing.assert_array_equal(fovea.attention(stored_with_the_other_sign(q), k, v), fovea.attention(q, k, v))


def test_gradients_stored_with_the_other_sign():
    q, k, v = tensors(grad=True)
    out = attention(q, k, v)
    upstream = torch.randn_like(out)
    wanted = torch.autograd.grad(out, (q, k, v), upstream, retain_graph=True)
    for a, b in zip(torch.autograd.grad(out, (q, k, v), stored_with_the_other_sign(upstream)), wanted):
        assert torch.equal(a, b)


def test_zeros_without_memory():
    q, k, v = tensors()
    zeros = torch._efficientzerotensor(q.shape)
    assert_equal(attention(zeros, k, v), sdpa64(torch.zeros_like(q), k, v))
    assert_equal(attention(q, k, v, bias=torch._efficientzerotensor((9, 9))), sdpa64(q, k, v))


@pytest.mark.parametrize("make", [
    lambda x: x.to_sparse(), lambda x: x.to_mkldnn(), lambda x: torch.nested.nested_tensor(list(x)),
    lambda x: torch.nested.nested_tensor(list(x), layout=torch.jagged),
])
@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
def test_tensors_that_are_not_dense_are_refused(make):
    q, k, v = tensors()
    for given in ((make(q), k, v), (q, make(k), v)):
        with pytest.raises(ValueError, match="wanted a dense one"):
            attention(*given)


def test_fake_tensors_give_fake_tensors():
    from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

    with FakeTensorMode():
        q = torch.randn(2, 4, 9, 8)
        assert attention(q, q, q).shape == q.shape
    found = attention(q, q, q)  # outside of the mode, too: nothing there to read
    assert isinstance(found, FakeTensor) and found.shape == q.shape


class Named(torch.Tensor):
    pass


def test_subclasses_stay_and_have_gradients():
    q, k, v = tensors()
    named = q.clone().as_subclass(Named).requires_grad_()
    out = attention(named, k, v)
    assert isinstance(out, Named)
    out.sum().backward()
    plain = q.clone().requires_grad_()
    attention(plain, k, v).sum().backward()
    assert torch.equal(named.grad, plain.grad)


def test_transforms_of_functions_are_refused():
    q, k, v = tensors()
    loss = lambda x: attention(x, k, v).sum()
    for call in (lambda: torch.func.vmap(attention)(q[None], k[None], v[None]),
                 lambda: torch.func.vmap(lambda x: attention(x, k, v, mask=CAUSAL))(q[None]),
                 lambda: torch.func.grad(loss)(q), lambda: torch.func.jacrev(loss)(q),
                 lambda: torch.func.jvp(loss, (q,), (q,))):  # fmt: skip
        with pytest.raises(NotImplementedError, match="torch.func"):
            call()
    assert torch.equal(torch.func.functionalize(attention)(q, k, v), attention(q, k, v))


def test_forward_mode_derivatives_are_refused():
    q, k, v = tensors()
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(q, torch.ones_like(q))
        for options in ({}, {"mask": CAUSAL}):
            with pytest.raises(NotImplementedError, match="forward-mode"):
                attention(dual, k, v, **options)
        assert_equal(attention(q, k, v), sdpa64(q, k, v))


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:`torch.jit.trace`", "ignore::FutureWarning")
def test_traced_calls_do_not_keep_their_first_result():
    q, k, v = tensors()
    traced = torch.jit.trace(lambda q, k, v: attention(q, k, v, "scaled_dot / causal"), (q, k, v))
    others = tensors()
    assert torch.equal(traced(*others), attention(*others, "scaled_dot / causal"))


@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning", "ignore:`torch.jit.trace`", "ignore::FutureWarning")
def test_recorded_calls_do_not_keep_their_first_mask():
    from torch.fx.experimental.proxy_tensor import make_fx

    q, k, v = tensors()
    call = lambda q, k, v, mask: attention(q, k, v, mask=mask)
    other = torch.rand(9, 9) < 0.6
    for record in (lambda: make_fx(call)(q, k, v, CAUSAL), lambda: torch.jit.trace(call, (q, k, v, CAUSAL))):
        assert_equal(record()(q, k, v, other), attention(q, k, v, mask=other))


@pytest.mark.parametrize("use", [lambda x, y: (x, x, x), lambda x, y: (x, y, y), lambda x, y: (x, y, x)])
def test_one_tensor_twice_can_be_compiled(use):
    x, y = (torch.randn(1, 2, 9, 8, requires_grad=True) for _ in range(2))
    bias = torch.randn(9, 9, requires_grad=True)
    loss = lambda x, y, bias: attention(*use(x, y), "scaled_dot / causal", bias=bias).square().sum() + y.sum()
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    found, wanted = (torch.autograd.grad(f(x, y, bias), (x, y, bias)) for f in (compiled, loss))
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


def test_inference_mode():
    q, k, v = tensors()
    with torch.inference_mode():
        mask = CAUSAL.clone()
        assert_equal(attention(q, k, v, mask=mask), sdpa64(q, k, v, CAUSAL))
        mask[:] = True  # which nobody counts in this mode
        assert_equal(attention(q, k, v, mask=mask), sdpa64(q, k, v))
        inside = q.clone()
        assert_equal(attention(inside, inside, inside), sdpa64(q, q, q))
    with torch.no_grad():
        assert not attention(*tensors(grad=True)).requires_grad


def test_a_mask_changed_in_place_is_seen():
    q, k, v = tensors()
    mask = torch.ones(9, 9, dtype=torch.bool)
    assert_equal(attention(q, k, v, mask=mask), sdpa64(q, k, v))
    mask[:, 3] = False
    assert_equal(attention(q, k, v, mask=mask), sdpa64(q, k, v, mask))
    view = mask[:]
    view[4, :2] = False
    assert_equal(attention(q, k, v, mask=mask), sdpa64(q, k, v, mask))


def test_a_mask_changed_before_backward_leaves_the_gradients():
    q, k, v = tensors(grad=True)
    mask = CAUSAL.clone()
    out = attention(q, k, v, mask=mask)
    wanted = torch.autograd.grad(sdpa64(q, k, v, CAUSAL).sum(), (q, k, v))
    mask[:] = True
    for a, b in zip(torch.autograd.grad(out.sum(), (q, k, v)), wanted):
        assert_equal(a, b)


def test_results_changed_before_backward_are_an_error():
    for change in (lambda x: x.mul_(2), lambda x: x.relu_()):
        q, k, v = tensors(grad=True)
        changed = change(attention(q, k, v))
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            changed.sum().backward()


def test_what_masked_keys_hold_does_not_matter():
    q, k, v = tensors(grad=True)
    mask = torch.ones(9, 9, dtype=torch.bool)
    mask[:, 5:] = False
    clean = attention(q, k, v, mask=mask)
    wanted = torch.autograd.grad(clean.sum(), (q, k, v))
    for value in (float("nan"), float("inf")):
        dirty = [x.detach().clone() for x in (k, v)]
        for x in dirty:
            x[:, :, 5:] = value
            x.requires_grad_()
        for options in ({"mask": mask}, {"lengths": [5, 5]}):
            found = attention(q, *dirty, **options)
            torch.testing.assert_close(found, clean, atol=1e-6, rtol=1e-5)
            for a, b in zip(torch.autograd.grad(found.sum(), (q, *dirty)), wanted):
                torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


def test_one_tensor_as_query_key_and_value():
    x = torch.randn(2, 4, 9, 8, requires_grad=True)
    found, = torch.autograd.grad(attention(x, x, x, "scaled_dot / causal").square().sum(), x)
    wanted, = torch.autograd.grad(sdpa64(x, x, x, CAUSAL).square().sum(), x)
    torch.testing.assert_close(found, wanted.float(), atol=3e-5, rtol=1e-4)


def test_expanded_and_overlapping_tensors_have_gradients():
    base = torch.randn(1, 1, 9, 8, requires_grad=True)
    wide = torch.randn(2, 4, 12, 8, requires_grad=True)
    windows = wide.unfold(2, 4, 1).permute(0, 1, 2, 4, 3).reshape(2, 4, 36, 8)
    given = base.expand(2, 4, 9, 8), windows[:, :, ::4], wide[:, :, :9].flip(-1)
    found, wanted = attention(*given), sdpa64(*given)
    upstream = torch.randn_like(found)
    for a, b in zip(torch.autograd.grad(found, (base, wide), upstream), torch.autograd.grad(wanted, (base, wide), upstream.double())):
        torch.testing.assert_close(a, b, atol=2e-5, rtol=1e-4)


def test_heads_of_zero_are_refused():
    q, k, v = tensors()
    for given in ((q[:, :0], k[:, :0], v[:, :0]), (q, k[:, :0], v[:, :0])):
        with pytest.raises(ValueError, match="query heads cannot share 0 key heads"):
            attention(*given)


def test_sizes_of_zero_have_gradients():
    for sizes in ((0, 4, 9, 8), (2, 4, 0, 8), (2, 4, 9, 0)):
        q, k, v = (torch.zeros(sizes, requires_grad=True) for _ in range(3))
        attention(q, k, v).sum().backward()
        assert all(x.grad.shape == x.shape for x in (q, k, v))


def test_sizes_beyond_memory_are_errors():
    wide = torch.zeros(1).expand(2**16, 2**6, 2**18, 2**10)  # one number in memory
    with pytest.raises((ValueError, MemoryError, RuntimeError)):
        attention(wide, wide, wide)
    long = torch.zeros(1).expand(1, 1, 2**40, 8)
    with pytest.raises(ValueError, match="wanted less than 2"):
        attention(long, long, long)


@pytest.mark.parametrize("which", range(8))
def test_any_set_of_inputs_may_want_gradients(which):
    q, k, v = (x.requires_grad_(bool(which >> i & 1)) for i, x in enumerate(tensors()))
    out = attention(q, k, v)
    assert out.requires_grad == (which > 0)
    if which:
        out.sum().backward()
    for x, wanted in zip((q, k, v), torch.autograd.grad(sdpa64(*(a := [x.detach().requires_grad_() for x in (q, k, v)])).sum(), a)):
        assert (x.grad is None) == (not x.requires_grad)
        if x.requires_grad:
            assert_equal(x.grad, wanted)


def test_autocast():
    x = torch.randn(2, 9, 32, requires_grad=True)
    linear = torch.nn.Linear(32, 32)
    heads = lambda y: y.unflatten(-1, (4, 8)).transpose(1, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = heads(linear(x))
        found, wanted = attention(y, y, y), F.scaled_dot_product_attention(y, y, y)
        assert found.dtype is wanted.dtype is torch.bfloat16
        layer = fovea.torch.MultiheadAttention(32, 4, batch_first=True)
        assert layer(x, x, x)[0].dtype is torch.bfloat16
    torch.testing.assert_close(found, wanted, atol=2e-2, rtol=2e-2)
    found.float().sum().backward()
    assert x.grad.dtype is torch.float32 and x.grad.isfinite().all()


@pytest.mark.parametrize("reentrant", [True, False])
def test_checkpoints_draw_the_same_dropout(reentrant):
    gradients = []
    for call in (attention, lambda *given, **options: checkpoint(attention, *given, **options, use_reentrant=reentrant)):
        if reentrant and call is not attention:  # passes no keyword arguments on
            call = lambda *given, dropout_p: checkpoint(lambda *x: attention(*x, dropout_p=dropout_p), *given, use_reentrant=True)
        torch.manual_seed(3)
        given = tensors(grad=True)
        call(*given, dropout_p=0.3).square().sum().backward()
        gradients.append([x.grad for x in given])
    assert all(torch.equal(a, b) for a, b in zip(*gradients))


def test_saved_tensors_may_be_moved():
    q, k, v = tensors(grad=True)
    wanted = torch.autograd.grad(attention(q, k, v).sum(), (q, k, v))
    with torch.autograd.graph.save_on_cpu():
        out = attention(q, k, v)
    assert all(torch.equal(a, b) for a, b in zip(torch.autograd.grad(out.sum(), (q, k, v)), wanted))


def test_default_dtype_and_device_change_nothing():
    q, k, v = tensors()
    wanted = attention(q, k, v, mask=CAUSAL)
    softcap = lambda score, b, h, i, j: 3 * torch.tanh(score / 3)
    capped = fovea.torch.flex_attention(q, k, v, softcap)
    torch.set_default_dtype(torch.float64)
    try:
        compiled = torch.compile(lambda q, k, v, mask: attention(q, k, v, mask=mask), fullgraph=True, backend="aot_eager")
        torch.testing.assert_close(compiled(q, k, v, CAUSAL), wanted)
        assert torch.equal(fovea.torch.flex_attention(q, k, v, softcap), capped)
        with torch.device("meta"):
            assert attention(q, k, v, dropout_p=0.5).device.type == "cpu"
    finally:
        torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("bad", [[2.7, 3], torch.tensor([2.5, 3.0]), torch.ones(2, 2).long(), 5, [2**70, 1], ["1", "2"]])
@pytest.mark.parametrize("call", [attention, lambda q, k, v, **options: fovea.attention(q, k, v, **options)])
def test_lengths_that_are_no_whole_numbers_are_refused(bad, call):
    with pytest.raises(ValueError, match="wanted a list of whole numbers"):
        call(*tensors(), lengths=bad)


def test_places_of_weights_that_are_none_are_refused():
    for call in (attention, fovea.attention):
        with pytest.raises(ValueError, match="wanted True or a pair"):
            call(*tensors(), weights=([0.5], None))
        with pytest.raises(ValueError, match="wanted one from 0 up"):
            call(*tensors(), weights=([2**40], None))


@pytest.mark.parametrize("dropout", [-0.5, 1.0, float("nan")])
def test_dropout_out_of_range_is_refused(dropout):
    with pytest.raises(ValueError, match="dropout"):
        attention(*tensors(), dropout_p=dropout)


LAYERS = [lambda: fovea.torch.MultiheadAttention(16, 4, batch_first=True, spec="scaled_dot / causal"),
          lambda: fovea.torch.TransformerEncoderLayer(16, 4, 32, batch_first=True, spec="scaled_dot / causal").eval()]


@pytest.mark.parametrize("make", LAYERS)
def test_layers_can_be_copied_pickled_saved_and_compiled(make):
    layer, x = make(), torch.randn(2, 5, 16)
    call = lambda module: module(x, x, x)[0] if isinstance(layer, torch.nn.MultiheadAttention) else module(x)
    wanted = call(layer)
    file = io.BytesIO()
    torch.save(layer, file)
    file.seek(0)
    fresh = make()
    fresh.load_state_dict(layer.state_dict())
    for other in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer)), torch.load(file, weights_only=False), fresh):
        assert torch.equal(call(other), wanted)
    torch.testing.assert_close(call(torch.compile(layer, fullgraph=True, backend="aot_eager")), wanted)


def test_a_layer_trains_as_torchs_does():
    torch.manual_seed(3)
    theirs = torch.nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    ours = fovea.torch.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True)
    ours.load_state_dict(theirs.state_dict())
    x, goal = torch.randn(3, 7, 16), torch.randn(3, 7, 16)
    losses = []
    for layer in (theirs, ours):
        optimizer = torch.optim.AdamW(layer.parameters(), 1e-2)
        losses.append([])
        for _ in range(10):
            optimizer.zero_grad()
            loss = (layer(x) - goal).square().mean()
            loss.backward()
            optimizer.step()
            losses[-1].append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-4) and losses[0][-1] < losses[0][0]


def causal(b, h, q, k):
    return q >= k


def test_block_masks_can_be_copied_after_use_and_are_let_go():
    q, k, v = tensors()
    mask = create_block_mask(causal, None, None, 9, 9, device="cpu", BLOCK_SIZE=8)
    wanted = fovea.torch.flex_attention(q, k, v, block_mask=mask)
    for other in (copy.deepcopy(mask), pickle.loads(pickle.dumps(mask))):
        assert torch.equal(fovea.torch.flex_attention(q, k, v, block_mask=other), wanted)
    from fovea.torch.flex import _kept_masks

    gc.collect()
    before = len(_kept_masks)
    del mask, other
    gc.collect()
    assert len(_kept_masks) < before


def test_a_block_mask_for_other_sizes_is_refused_after_use_too():
    q, k, v = tensors()
    mask = create_block_mask(causal, None, None, 9, 9, device="cpu", BLOCK_SIZE=8)
    fovea.torch.flex_attention(q, k, v, block_mask=mask)
    with pytest.raises(ValueError, match="wanted the same"):
        fovea.torch.flex_attention(q[:, :, :1], k, v, block_mask=mask)


# Score functions that are a soft cap, ALiBi or nothing but in rare places.
RARE = {
    "one place": lambda s, b, h, q, k: torch.where((q == 5) & (k == 7), s + 10, s),
    "far pairs": lambda s, b, h, q, k: torch.where(q - k > 3990, float("-inf"), s),
    "a table of positions": lambda s, b, h, q, k, table=torch.cat([torch.zeros(4095), torch.ones(1)]): s + table[k],
    "clamped ALiBi": lambda s, b, h, q, k: s - 0.1 * (q - k).abs().clamp(max=4000),
    "a table by batch": lambda s, b, h, q, k, table=torch.zeros(1): s + table[b],
    "rounded": lambda s, b, h, q, k: s + (q // 4000) * 0.0,
}


@pytest.mark.parametrize("name", RARE)
def test_score_functions_that_random_places_cannot_tell_are_refused(name):
    q, k, v = (torch.randn(1, 2, 4096, 4) for _ in range(3))
    with pytest.raises(ValueError, match="is none that Fovea knows"):
        fovea.torch.flex_attention(q, k, v, RARE[name])
