"""fovea.torch.attention against scaled_dot_product_attention in float64, and PyTorch's own checks of ops."""

import gc
import multiprocessing
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

torch = pytest.importorskip("torch")
import torch.nn.functional as F  # noqa: E402

import fovea.torch  # noqa: E402
from fovea.torch.ops import _backward_op, _forward_op, _weights_op  # noqa: E402


def tensors(batch=2, heads=4, kv_heads=2, queries=9, keys=13, d=8, dv=5, grad=True):
    make = lambda h, n, f: torch.randn(batch, h, n, f, requires_grad=grad)
    return make(heads, queries, d), make(kv_heads, keys, d), make(kv_heads, keys, dv)


def sdpa64(q, k, v, mask=None, **kwargs):
    """The reference: float64, grouped heads repeated; rows that see nothing give 0."""
    group = q.shape[1] // k.shape[1]
    k, v = (x.double().repeat_interleave(group, 1) for x in (k, v))
    mask = mask.double() if mask is not None and mask.dtype is not torch.bool else mask
    return F.scaled_dot_product_attention(q.double(), k, v, attn_mask=mask, **kwargs)


def assert_same(found, wanted, inputs, atol=2e-5):
    """Outputs, and gradients of everything that asks for one."""
    torch.testing.assert_close(found.double(), wanted, atol=atol, rtol=1e-4)
    upstream = torch.randn_like(found)
    inputs = [x for x in inputs if x is not None and x.requires_grad]
    of_found = torch.autograd.grad(found, inputs, upstream)
    of_wanted = torch.autograd.grad(wanted, inputs, upstream.double())
    for a, b in zip(of_found, of_wanted):
        torch.testing.assert_close(a.double(), b.double(), atol=atol, rtol=1e-4)


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(7)


@pytest.mark.parametrize("case", range(48))
def test_random_shapes_strides_and_masks_equal_sdpa(case):
    rng = np.random.default_rng(case)
    heads = int(rng.integers(1, 4)) * 2
    queries, keys, d, dv = (int(rng.integers(1, 80)) for _ in range(4))
    q, k, v = tensors(int(rng.integers(1, 4)), heads, int(rng.choice([1, 2, heads])), queries, keys, d, dv)
    views = [q, k, v]
    layout = case % 4
    if layout == 1:  # joined heads
        views = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in views]
    elif layout == 2:  # features that are not neighbours
        views = [x.transpose(2, 3).contiguous().transpose(2, 3) for x in views]
    elif layout == 3:  # one batch entry for all
        views = [x[:1].expand(x.shape) for x in views]
    kind = case // 4 % 4
    mask = None
    if kind == 1:
        mask = torch.rand(queries, keys) < 0.6
        mask[:, 0] = True
    elif kind == 2:
        mask = torch.rand(q.shape[0], 1, queries, keys) < 0.5
        mask[..., 0] = True
    elif kind == 3:
        mask = torch.randn(heads, queries, keys, requires_grad=True)
    assert_same(fovea.torch.attention(*views, mask=mask), sdpa64(*views, mask), [q, k, v, mask])


@pytest.mark.parametrize("shape", [(2, 4), (3,), ()])
@pytest.mark.parametrize("options", [
    {}, {"is_causal": True}, {"scale": 0.3}, {"scale": -0.3}, {"scale": 0.0}, {"is_causal": True, "scale": 2},
    {"attn_mask": torch.ones(9, 13, dtype=torch.bool).tril(2)}, {"attn_mask": torch.linspace(-2, 2, 9 * 13).view(9, 13)},
])  # fmt: skip
def test_arguments_of_sdpa(shape, options):
    q, k, v = (torch.randn(*shape, n, 8, requires_grad=True) for n in (9, 13, 13))
    mask = options.get("attn_mask")
    exact = {**options, "attn_mask": mask.double()} if mask is not None and mask.dtype is not torch.bool else options
    wanted = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), **exact)
    assert_same(fovea.torch.scaled_dot_product_attention(q, k, v, **options), wanted, (q, k, v))


def test_arguments_of_sdpa_with_a_mask_for_each_sequence_and_grouped_heads():
    call = fovea.torch.scaled_dot_product_attention
    q, k, v = (torch.randn(3, n, 8, requires_grad=True) for n in (9, 13, 13))
    mask = torch.rand(3, 9, 13) < 0.7
    assert_same(call(q, k, v, mask), F.scaled_dot_product_attention(q.double(), k.double(), v.double(), mask), (q, k, v))
    q, k, v = tensors()
    assert_same(call(q, k, v, enable_gqa=True), sdpa64(q, k, v), (q, k, v))
    for wrong in (lambda: call(q, k, v), lambda: call(q[0], k, v), lambda: call(q[None], k[None], v[None]),
                  lambda: call(q, k, v, torch.ones(9, 13) > 0, is_causal=True, enable_gqa=True)):  # fmt: skip
        with pytest.raises(ValueError, match="scaled_dot_product_attention: got .* wanted"):
            wrong()


@pytest.mark.parametrize("queries,keys", [(9, 9), (16, 40)])
def test_causal_and_windows_equal_a_masked_sdpa(queries, keys):
    q, k, v = tensors(queries=queries, keys=keys)
    position = torch.arange(queries)[:, None] + keys - queries
    key = torch.arange(keys)
    for spec, mask in {
        "scaled_dot / causal": key <= position,
        "scaled_dot / window(3,1)": (key >= position - 3) & (key <= position + 1),
        "scaled_dot / causal & window(4,0)": (key <= position) & (key >= position - 4),
    }.items():
        assert_same(fovea.torch.attention(q, k, v, spec), sdpa64(q, k, v, mask), [q, k, v])
        assert_same(fovea.torch.attention(q, k, v, mask=mask), sdpa64(q, k, v, mask), [q, k, v])


def test_rows_that_see_nothing_give_zero_and_no_gradient():
    q, k, v = tensors()
    mask = torch.ones(9, 13, dtype=torch.bool)
    mask[3] = False
    out = fovea.torch.attention(q, k, v, mask=mask)
    assert (out[:, :, 3] == 0).all()
    out.sum().backward()
    assert (q.grad[:, :, 3] == 0).all() and all(x.grad.isfinite().all() for x in (q, k, v))


def test_lengths_and_documents():
    q, k, v = tensors(queries=12, keys=12)
    mask = (torch.arange(12) < torch.tensor([5, 9])[:, None])[:, None, None]
    assert_same(fovea.torch.attention(q, k, v, lengths=[5, 9]), sdpa64(q, k, v, mask), [q, k, v])
    assert_same(fovea.torch.attention(q, k, v, lengths=torch.tensor([5, 9])), sdpa64(q, k, v, mask), [q, k, v])
    of = torch.tensor([3, 4, 5]).repeat_interleave(torch.tensor([3, 4, 5]))
    mask = (of[:, None] == of) & torch.ones(12, 12, dtype=torch.bool).tril()
    assert_same(fovea.torch.attention(q, k, v, "scaled_dot / causal", documents=[3, 4, 5]), sdpa64(q, k, v, mask), [q, k, v])


def test_gradients_reach_every_term():
    q, k, v = tensors(kv_heads=4, queries=13)
    bias = torch.randn(4, 1, 13, requires_grad=True)
    slopes = torch.rand(4, requires_grad=True)
    distance = (torch.arange(13)[:, None] - torch.arange(13)).abs()
    wanted = sdpa64(q, k, v, bias - slopes[:, None, None] * distance)
    assert_same(fovea.torch.attention(q, k, v, bias=bias, slopes=slopes), wanted, [q, k, v, bias, slopes])
    sink = torch.randn(4, requires_grad=True)
    scores = torch.cat([q.double() @ k.double().mT / 8**0.5, sink.double()[:, None, None].expand(2, 4, 13, 1)], -1)
    wanted = scores.softmax(-1)[..., :-1] @ v.double()
    assert_same(fovea.torch.attention(q, k, v, sink=sink), wanted, [q, k, v, sink])
    W = torch.randn(8, 8, requires_grad=True)
    wanted = sdpa64(q.double() @ W.double(), k, v, scale=1.0)
    assert_same(fovea.torch.attention(q, k, v, "bilinear", W=W), wanted, [q, k, v, W])
    U, b, a = torch.randn(6, 8, requires_grad=True), torch.randn(6, requires_grad=True), torch.randn(6, requires_grad=True)
    A = torch.randn(6, 8, requires_grad=True)
    hidden = torch.tanh((k.double() @ A.double().T)[:, :, None] + (q.double() @ U.double().T + b.double())[:, :, :, None])
    wanted = (hidden @ a.double()).softmax(-1) @ v.double()
    assert_same(fovea.torch.attention(q, k, v, "additive", W=A, U=U, b=b, score_vector=a), wanted, [q, k, v, A, U, b, a])


def test_weights_and_lse():
    q, k, v = tensors()
    found = fovea.torch.attention(q, k, v, "scaled_dot / causal", weights=([1, 2], [0, 8]), return_lse=True)
    scores = q.double() @ k.double().repeat_interleave(2, 1).mT / 8**0.5
    scores = scores.masked_fill(torch.ones(9, 13, dtype=torch.bool).triu(5), -torch.inf)
    torch.testing.assert_close(found.weights.double(), scores.softmax(-1)[:, [1, 2]][:, :, [0, 8]], atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(found.lse.double(), scores.logsumexp(-1), atol=1e-5, rtol=1e-5)
    assert not found.weights.requires_grad and not found.lse.requires_grad


def test_dropout_follows_torchs_seed_and_is_the_same_in_backward():
    q, k, v = tensors(dv=13)
    eye = torch.eye(13).expand(2, 2, 13, 13).clone().requires_grad_()
    torch.manual_seed(5)
    dropped = fovea.torch.attention(q, k, eye, dropout_p=0.4)  # the weights themselves
    torch.manual_seed(5)
    assert torch.equal(dropped, fovea.torch.attention(q, k, eye, dropout_p=0.4))
    assert not torch.equal(dropped, fovea.torch.attention(q, k, eye, dropout_p=0.4))
    kept = dropped != 0
    assert 0.5 < kept.float().mean() < 0.7
    scores = q.double() @ k.double().repeat_interleave(2, 1).mT / 8**0.5
    weights = scores.softmax(-1) * kept / 0.6
    assert_same(dropped, weights @ eye.double().repeat_interleave(2, 1), [q, k, eye])


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_sixteen_bits_are_converted(dtype):
    q, k, v = (x.detach().to(dtype).requires_grad_() for x in tensors())
    out = fovea.torch.attention(q, k, v)
    assert out.dtype is dtype
    torch.testing.assert_close(out.double(), sdpa64(q, k, v), atol=2e-2, rtol=2e-2)
    out.sum().backward()
    assert q.grad.dtype is dtype


SPECS = ["scaled_dot / causal", "cosine(0.5) / full", "scaled_dot + alibi / window(3,3)", "dot / full / sparsemax",
         "scaled_dot / full / top_k(3)"]


@pytest.mark.parametrize("spec", SPECS)
def test_opcheck(spec):
    q, k, v = (x.detach() for x in tensors(kv_heads=4))
    options = (None, spec, None, None, None, 0, 0.0, False)
    arguments = (q, k, v, *[None] * 9, *options)
    torch.library.opcheck(_forward_op, (*arguments, True))
    out, lse = _forward_op(*arguments, True)
    torch.library.opcheck(_backward_op, (*arguments, out, lse, torch.randn_like(out), [True] * 3 + [False] * 9))
    torch.library.opcheck(_weights_op, (*arguments, [0, 2], [1, 8]))


def test_ops_called_with_other_tensors_than_theirs_are_errors():
    q, k, v = (x.detach() for x in tensors(kv_heads=4))
    options = (None, "scaled_dot", None, None, None, 0, 0.0, False)
    arguments = (q, k, v, *[None] * 9, *options)
    out, lse = _forward_op(*arguments, True)
    wanted = [True] * 3 + [False] * 9
    for bad in ((out[:, :, :5], lse, out), (out, lse[:, :, :5], out), (out, lse, out[:1]), (out, lse.double(), out),
                (out, lse, out.double()), (out, lse.mT.contiguous().mT, out), (out[0], lse, out), (out, lse[0], out)):  # fmt: skip
        with pytest.raises(ValueError):
            _backward_op(*arguments, *bad, wanted)
    with pytest.raises(ValueError, match="wanted float32"):
        _forward_op(q, k, v, torch.zeros(9, 13, dtype=torch.float16), *[None] * 8, *options, True)


def test_opcheck_of_strided_views_and_biases():
    q, k, v = (x.detach().transpose(1, 2).contiguous().transpose(1, 2) for x in tensors(kv_heads=4))
    arguments = (q, k, v, torch.randn(9, 13), *[None] * 8, None, "scaled_dot", None, None, None, 0, 0.0, False)
    torch.library.opcheck(_forward_op, (*arguments, True))
    out, lse = _forward_op(*arguments, True)
    torch.library.opcheck(_backward_op, (*arguments, out, lse, torch.randn_like(out), [True] * 4 + [False] * 8))


@pytest.mark.filterwarnings("ignore:Input #")
@pytest.mark.parametrize("spec", SPECS[:3])
def test_gradcheck(spec):
    # Kernels compute in float32: differences are taken over a step that its rounding leaves visible.
    inputs = tensors(batch=1, heads=2, kv_heads=1, queries=4, keys=5, d=3, dv=2)
    assert torch.autograd.gradcheck(lambda q, k, v: fovea.torch.attention(q, k, v, spec), inputs, eps=1e-2, atol=2e-3,
                                    rtol=2e-2, nondet_tol=0)


def loss(q, k, v, mask=None):
    return fovea.torch.attention(q, k, v, "scaled_dot / causal", mask=mask).square().sum()


@pytest.mark.parametrize("masked", [False, True])
def test_compile_fullgraph_forward_and_backward(masked):
    q, k, v = tensors(queries=13)
    mask = torch.rand(13, 13) < 0.8 if masked else None
    wanted = torch.autograd.grad(loss(q, k, v, mask), (q, k, v))
    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    found = torch.autograd.grad(compiled(q, k, v, mask), (q, k, v))
    for a, b in zip(found, wanted):
        torch.testing.assert_close(a, b, atol=1e-6, rtol=1e-5)


def test_compile_with_inductor_and_dropout():
    q, k, v = (x.detach() for x in tensors())
    compiled = torch.compile(lambda q, k, v: fovea.torch.attention(q * 2, k, v, dropout_p=0.5) + 1, fullgraph=True)
    assert compiled(q, k, v).shape == (2, 4, 9, 5)
    plain = torch.compile(lambda q, k, v: fovea.torch.attention(q * 2, k, v) + 1, fullgraph=True)
    torch.testing.assert_close(plain(q, k, v), fovea.torch.attention(q * 2, k, v) + 1)


class Block(torch.nn.Module):
    def forward(self, q, k, v):
        return fovea.torch.attention(q, k, v, "scaled_dot / window(4,4)")


def test_export_with_dynamic_shapes():
    q, k, v = (x.detach() for x in tensors(queries=13))
    tokens = torch.export.Dim("tokens", min=2, max=512)
    program = torch.export.export(Block(), (q, k, v), dynamic_shapes=({2: tokens},) * 3)
    other = [x.detach() for x in tensors(queries=31, keys=31)]
    torch.testing.assert_close(program.module()(*other), Block()(*other))


def test_second_derivatives_are_refused():
    q, k, v = tensors()
    with pytest.raises(NotImplementedError, match="second derivatives"):
        torch.autograd.grad(fovea.torch.attention(q, k, v).sum(), q, create_graph=True)


@pytest.mark.parametrize("shape", [(0, 4, 9, 8), (2, 4, 0, 8), (2, 4, 9, 0)])
def test_sizes_of_zero(shape):
    q = torch.zeros(shape, requires_grad=True)
    out = fovea.torch.attention(q, q, q)
    assert out.shape == shape
    out.sum().backward()
    assert q.grad.shape == shape


def test_no_keys_give_zero_gradients():
    q, k = torch.randn(1, 2, 3, 4, requires_grad=True), torch.zeros(1, 2, 0, 4, requires_grad=True)
    fovea.torch.attention(q, k, k).sum().backward()
    assert (q.grad == 0).all()


BAD = {
    "float64": (lambda q: fovea.torch.attention(q.double(), q, q), "q is torch.float64, wanted float32"),
    "integers": (lambda q: fovea.torch.attention(q, q.long(), q), "k is torch.int64"),
    "device": (lambda q: fovea.torch.attention(q.to("meta"), q, q), "q is on meta, wanted a tensor on the CPU"),
    "none": (lambda q: fovea.torch.attention(None, q, q), "q is NoneType"),
    "array": (lambda q: fovea.torch.attention(q, q.detach().numpy(), q), "k is ndarray"),
    "rank": (lambda q: fovea.torch.attention(q[0], q, q), "wanted \\[batch, heads, tokens, features\\]"),
    "batches": (lambda q: fovea.torch.attention(q, q[:1], q[:1]), "batches differ"),
    "spec": (lambda q: fovea.torch.attention(q, q, q, "scaled_dot / casual"), "did you mean \"causal\""),
    "mask": (lambda q: fovea.torch.attention(q, q, q, mask=torch.ones(3, dtype=torch.bool)), "mask: got one of"),
    "integer mask": (lambda q: fovea.torch.attention(q, q, q, mask=torch.ones(9, 9, dtype=torch.int)), "mask is torch.int32"),
    "float mask": (lambda q: fovea.torch.attention(q, q, q, mask=torch.ones(3, 3)), "broadcasts to"),
    "lengths": (lambda q: fovea.torch.attention(q, q, q, lengths=[99, 1]), "no more than there are"),
    "dropout": (lambda q: fovea.torch.attention(q, q, q, dropout_p=1.5), "dropout"),
    "number of a mask": (lambda q: _forward_op(q, q, q, *[None] * 9, None, "dot", None, None, None, 10**9, 0.0, False, False),
                         "is not held"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_value_error(case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call(torch.randn(2, 4, 9, 8))


class WithoutFunctions(torch.Tensor):
    __dlpack_c_exchange_api__ = None


def test_tensors_whose_type_lacks_dlpacks_functions_give_the_same():
    q, k, v = (x.detach() for x in tensors())
    plain = fovea.torch.attention(q, k, v)
    found = fovea.torch.attention(*(x.as_subclass(WithoutFunctions) for x in (q, k, v)))
    assert torch.equal(found.as_subclass(torch.Tensor), plain)


def test_outputs_never_alias_inputs():
    q, k, v = tensors(heads=2, queries=1, keys=1, d=4, dv=4)
    out = fovea.torch.attention(q, k, v)
    assert out.untyped_storage().data_ptr() not in {x.untyped_storage().data_ptr() for x in (q, k, v)}


def test_threads_are_torchs_and_change_nothing():
    q, k, v = tensors(queries=200, keys=200, d=32)
    before, own = torch.get_num_threads(), fovea.num_threads()
    try:
        found = []
        for threads in (1, 2):
            torch.set_num_threads(threads)
            out = fovea.torch.attention(q, k, v, "scaled_dot / causal")
            found.append((out, *torch.autograd.grad(out.sum(), (q, k, v))))
        assert fovea.num_threads() == own
        for a, b in zip(*found):
            assert torch.equal(a, b)
    finally:
        torch.set_num_threads(before)


def test_as_many_threads_work_as_torch_has_and_they_are_its_own():
    # Threads of the process before and after a large call (PyTorch's are started by the first line that needs them), and
    # how many of them the call kept busy.
    script = """if True:
        import os, sys, torch, fovea.torch
        torch.set_num_threads(int(sys.argv[1]))
        q = torch.randn(1, 8, 1024, 64, requires_grad=True)
        (q @ q.mT).softmax(-1).sum().backward()

        def ticks():
            stats = {task: open(f"/proc/self/task/{task}/stat").read() for task in os.listdir("/proc/self/task")}
            return {task: int(stat.rsplit(")")[1].split()[11]) for task, stat in stats.items()}

        before = ticks()
        for _ in range(8):
            fovea.torch.attention(q, q, q).sum().backward()
        after = ticks()
        print(len(after) - len(before), sum(after[task] - before[task] >= 5 for task in before))
    """
    for threads in (1, 2, 3):
        run = subprocess.run([sys.executable, "-c", script, str(threads)], check=True, capture_output=True, text=True)
        assert run.stdout.split() == ["0", str(threads)]


def test_forked_child_of_a_process_whose_threads_have_worked():
    # The threads of OpenMP are not in the child, and it would wait for them for ever: Fovea's own do the work there.
    script = """if True:
        import os, signal, torch, fovea.torch
        torch.set_num_threads(2)
        q = torch.randn(1, 4, 300, 32, requires_grad=True)
        out = fovea.torch.attention(q, q, q)
        child = os.fork()
        if child == 0:
            signal.alarm(60)
            again = fovea.torch.attention(q, q, q)
            same = bytes(again.detach().numpy().tobytes()) == bytes(out.detach().numpy().tobytes())
            os._exit(0 if same else 1)
        assert os.waitpid(child, 0)[1] == 0
        assert torch.equal(fovea.torch.attention(q, q, q), out)
    """
    subprocess.run([sys.executable, "-c", script], check=True)


def test_errors_leave_the_threads_of_torch_usable():
    q = torch.randn(1, 4, 300, 32)
    wanted = fovea.torch.attention(q, q, q)
    for _ in range(20):
        with pytest.raises(ValueError):
            fovea.torch.attention(q, q[:, :3], q)
        assert torch.equal(fovea.torch.attention(q, q, q), wanted)


def test_several_threads_of_python_at_once():
    q = torch.randn(1, 4, 300, 32)
    wanted, found = fovea.torch.attention(q, q, q), []

    def work():
        found.extend(torch.equal(fovea.torch.attention(q, q, q), wanted) for _ in range(50))

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [True] * 200


def test_other_threads_of_python_run_meanwhile():
    q = torch.ones(1, 8, 2048, 64, requires_grad=True)
    worker = threading.Thread(target=lambda: fovea.torch.attention(q, q, q).sum().backward())
    worker.start()
    turns = 0
    while worker.is_alive():
        turns += 1
        time.sleep(0.001)
    assert turns > 10


class Attentions(torch.utils.data.Dataset):
    def __len__(self):
        return 6

    def __getitem__(self, i):
        q = torch.full((1, 2, 70, 8), float(i))
        return fovea.torch.attention(q, q, q)[0]


def test_works_in_forked_workers_of_a_data_loader():
    Attentions()[0]  # the parent's threads exist by now
    loader = torch.utils.data.DataLoader(Attentions(), batch_size=2, num_workers=2,
                                         multiprocessing_context=multiprocessing.get_context("fork"))
    found = torch.cat(list(loader))
    torch.testing.assert_close(found[:, 0, 0, 0], torch.arange(6.0))


def test_ten_thousand_calls_leave_nothing_behind():
    from test_attention import resident

    q, k, v = tensors(queries=13)
    mask = torch.ones(13, 13, dtype=torch.bool).tril()

    def calls(count):
        for i in range(count):
            fovea.torch.attention(q, k, v, mask=mask)
            other = torch.ones(13, 13, dtype=torch.bool)
            torch.autograd.grad(fovea.torch.attention(q, k, v, mask=other).sum(), (q, k, v))
        gc.collect()

    calls(300)
    references = [sys.getrefcount(x) for x in (q, k, v, mask)]
    before = resident()
    calls(5000)
    assert [sys.getrefcount(x) for x in (q, k, v, mask)] == references
    assert resident() - before < 8 * 2**20


def test_calls_through_the_ops_equal_direct_ones():
    # A profiler looks at every op, so nothing is left out; a graph may also be made directly and differentiated under one.
    for make in (lambda x: x, lambda x: x.transpose(1, 2).contiguous().transpose(1, 2)):
        q, k, v = (make(x.detach()).requires_grad_() for x in tensors(kv_heads=4))
        mask = torch.rand(9, 13) < 0.7
        for options in ({}, {"mask": mask}, {"dropout_p": 0.3}):
            torch.manual_seed(3)
            direct = fovea.torch.attention(q, k, v, **options)
            upstream = torch.randn_like(direct)
            wanted = torch.autograd.grad(direct, (q, k, v), upstream, retain_graph=True)
            with torch.profiler.profile():
                torch.manual_seed(3)
                seen = fovea.torch.attention(q, k, v, **options)
                of_seen = torch.autograd.grad(seen, (q, k, v), upstream)
                of_direct = torch.autograd.grad(direct, (q, k, v), upstream)
            assert torch.equal(seen, direct) and seen.stride() == direct.stride()
            for a, b, c in zip(wanted, of_seen, of_direct):
                assert torch.equal(a, b) and torch.equal(a, c) and a.stride() == b.stride()


def test_gradients_of_some_inputs_only():
    q, k, v = tensors()
    out = fovea.torch.attention(q, k.detach(), v)
    upstream = torch.randn_like(out)
    found = torch.autograd.grad(out, (q, v), upstream)
    wanted = torch.autograd.grad(fovea.torch.attention(q, k, v), (q, v), upstream)
    assert all(torch.equal(a, b) for a, b in zip(found, wanted))


def test_inputs_changed_before_backward_are_an_error():
    q, k, v = tensors()
    k2 = k * 1
    out = fovea.torch.attention(q, k2, v)
    k2.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()
