"""fovea.attention on NumPy and DLPack arrays, against the definition in float64."""

import gc
import os
import resource
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import fovea
import reference


def arrays(rng, batch=2, heads=4, kv_heads=2, queries=9, keys=13, d=8, dv=5):
    shape = lambda h, n, f: rng.standard_normal((batch, h, n, f)).astype(np.float32)
    return shape(heads, queries, d), shape(kv_heads, keys, d), shape(kv_heads, keys, dv)


@pytest.mark.parametrize("pattern", ["full", "causal", "window(3,2)", "causal & window(4,0)", "strided(3)",
                                     "window(2,0) | global(0)"])
def test_every_pattern_equals_the_definition(rng, pattern):
    q, k, v = arrays(rng)
    found = fovea.attention(q, k, v, f"scaled_dot / {pattern} / soft", return_lse=True, weights=True)
    output, weights, lse = reference.attention(q, k, v, reference.visible(pattern, 9, 13))
    np.testing.assert_allclose(found.output, output, atol=2e-6)
    np.testing.assert_allclose(found.weights, weights, atol=1e-6)
    np.testing.assert_allclose(found.lse, lse, atol=1e-5)


def test_random_shapes_strides_and_masks_equal_the_definition(rng):
    for _ in range(60):
        heads = int(rng.integers(1, 5)) * 2
        queries, keys, d, dv = (int(rng.integers(1, 70)) for _ in range(4))
        q, k, v = arrays(rng, int(rng.integers(1, 4)), heads, int(rng.choice([1, 2, heads])), queries, keys, d, dv)
        if rng.random() < 0.5:  # memory [B, N, H, D], as joined heads have it
            q, k, v = (np.ascontiguousarray(x.transpose(0, 2, 1, 3)).transpose(0, 2, 1, 3) for x in (q, k, v))
        if rng.random() < 0.3:  # every second token of a longer array, backwards
            k, v = (np.repeat(x, 2, 2)[:, :, ::-2] for x in (k, v))
        mask = rng.random((q.shape[0], 1, queries, keys)) < 0.6
        np.testing.assert_allclose(fovea.attention(q, k, v, mask=mask),
                                   reference.attention(q, k, v, mask)[0], atol=1e-5)


def test_arrays_are_read_in_place():
    # Token strides far apart: a copy of q, k and v would take 3 x 64 MB more.
    big = np.zeros((1, 1, 2**24 // 16, 16), np.float32)
    big[0, 0, :: 2**16] = np.arange(16)
    view = big[:, :, :: 2**16]
    assert view.strides[2] == 2**16 * 64
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    output = fovea.attention(view, view, view)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 * 1024
    np.testing.assert_allclose(output, view, rtol=1e-5)


def test_features_that_are_not_neighbours_are_copied(rng):
    q, k, v = arrays(rng, kv_heads=4)
    far = [np.repeat(x, 2, 3)[..., ::2] for x in (q, k, v)]
    np.testing.assert_array_equal(fovea.attention(*far), fovea.attention(q, k, v))


def test_dlpack_arrays_work_and_read_only_ones(rng):
    torch = pytest.importorskip("torch")
    q, k, v = arrays(rng)
    tensors = [torch.from_numpy(x) for x in (q, k, v)]
    np.testing.assert_array_equal(fovea.attention(*tensors), fovea.attention(q, k, v))
    for x in (q, k, v):
        x.flags.writeable = False
    assert fovea.attention(q, k, v).shape == (2, 4, 9, 5)


class OnlyDlpack:
    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **kwargs):
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def test_objects_that_speak_dlpack_alone(rng):
    q, k, v = arrays(rng)
    mask = rng.random((9, 13)) < 0.5
    found = fovea.attention(*(OnlyDlpack(x) for x in (q, k, v)), mask=OnlyDlpack(mask))
    np.testing.assert_array_equal(found, fovea.attention(q, k, v, mask=mask))


def test_memory_of_any_alignment(rng):
    q, k, v = arrays(rng)
    memory = np.ndarray(q.shape, np.float32, bytearray(q.nbytes + 1), 1)
    memory[...] = q
    np.testing.assert_array_equal(fovea.attention(memory, k, v), fovea.attention(q, k, v))


def test_terms_and_other_scores(rng):
    q, k, v = arrays(rng, kv_heads=4)
    bias = rng.standard_normal((4, 1, 13)).astype(np.float32)
    np.testing.assert_allclose(fovea.attention(q, k, v, bias=bias), reference.attention(q, k, v, bias=bias)[0], atol=2e-6)
    slopes = np.array([0.5, 0.25, 0.1, 0.0], np.float32)
    distance = np.abs(np.arange(9)[:, None] + 4 - np.arange(13))
    np.testing.assert_allclose(fovea.attention(q, k, v, slopes=slopes),
                               reference.attention(q, k, v, bias=-slopes[:, None, None] * distance)[0], atol=2e-6)
    W = rng.standard_normal((8, 8)).astype(np.float32)
    np.testing.assert_allclose(fovea.attention(q, k, v, "bilinear", W=W),
                               reference.attention(q @ W, k, v, scale=1)[0], atol=1e-5)
    unit = lambda x: x / np.linalg.norm(x, axis=-1, keepdims=True)
    np.testing.assert_allclose(fovea.attention(q, k, v, "cosine(0.5)", mask=np.tri(9, 13, 4, dtype=bool)),
                               reference.attention(unit(q), unit(k), v, np.tri(9, 13, 4, dtype=bool), scale=2)[0],
                               atol=1e-5)
    top = fovea.attention(q, k, v, "scaled_dot / full / top_k(2)", weights=True).weights
    assert ((top > 0).sum(-1) == 2).all()


def test_lengths_and_documents(rng):
    q, k, v = arrays(rng, kv_heads=4, queries=12, keys=12)
    mask = np.arange(12)[None, None, None, :] < np.array([5, 9])[:, None, None, None]
    np.testing.assert_allclose(fovea.attention(q, k, v, lengths=[5, 9]), reference.attention(q, k, v, mask)[0], atol=2e-6)
    of = np.repeat([0, 1, 2], [3, 4, 5])
    mask = (of[:, None] == of[None]) & np.tri(12, dtype=bool)
    np.testing.assert_allclose(fovea.attention(q, k, v, "scaled_dot / causal", documents=[3, 4, 5]),
                               reference.attention(q, k, v, mask)[0], atol=2e-6)


def test_weights_of_chosen_heads_and_rows(rng):
    q, k, v = arrays(rng)
    weights = fovea.attention(q, k, v, weights=([1, 3], [0, 8])).weights
    np.testing.assert_allclose(weights, reference.attention(q, k, v)[1][:, [1, 3]][:, :, [0, 8]], atol=1e-6)
    assert fovea.attention(q, k, v, weights=(None, [2])).weights.shape == (2, 4, 1, 13)


def test_dropout_draws_by_seed_in_training_only(rng):
    q, k, v = arrays(rng)
    plain = fovea.attention(q, k, v)
    np.testing.assert_array_equal(fovea.attention(q, k, v, dropout=0.5, seed=3), plain)
    first = fovea.attention(q, k, v, dropout=0.5, seed=3, training=True)
    np.testing.assert_array_equal(first, fovea.attention(q, k, v, dropout=0.5, seed=3, training=True))
    assert (first != fovea.attention(q, k, v, dropout=0.5, seed=4, training=True)).any()


@pytest.mark.parametrize("shape", [(0, 4, 9, 8), (2, 4, 0, 8), (2, 4, 9, 0)])
def test_sizes_of_zero(shape):
    q = np.zeros(shape, np.float32)
    assert fovea.attention(q, q, q).shape == shape


def test_no_keys_give_zero():
    q, k = np.ones((1, 2, 3, 4), np.float32), np.ones((1, 2, 0, 4), np.float32)
    found = fovea.attention(q, k, k, return_lse=True)
    assert (found.output == 0).all() and (found.lse == -np.inf).all()


BAD = {
    "dtype": (lambda q: fovea.attention(q.astype(np.float64), q, q), "q: got dtype float64, wanted float32"),
    "rank": (lambda q: fovea.attention(q[0], q, q), "wanted \\[batch, heads, tokens, features\\]"),
    "five dimensions": (lambda q: fovea.attention(q[None], q, q), "got 5 dimensions"),
    "heads": (lambda q: fovea.attention(q, q[:, :3], q[:, :3]), "4 query heads cannot share 3"),
    "batch": (lambda q: fovea.attention(q, q[:1], q[:1]), "batches differ"),
    "spec": (lambda q: fovea.attention(q, q, q, "scaled_dot / widow(3)"), "did you mean \"window\""),
    "empty spec number": (lambda q: fovea.attention(q, q, q, "scaled_dot / window(-1,2)"), "window"),
    "parameter": (lambda q: fovea.attention(q, q, q, W=q[0, 0]), "parameter W is given"),
    "missing parameter": (lambda q: fovea.attention(q, q, q, "additive"), "is not given"),
    "bias": (lambda q: fovea.attention(q, q, q, bias=np.zeros((3, 5), np.float32)), "broadcasts to"),
    "lengths": (lambda q: fovea.attention(q, q, q, lengths=[1]), "wanted one for each sequence"),
    "long length": (lambda q: fovea.attention(q, q, q, lengths=[1, 99]), "no more than there are"),
    "negative length": (lambda q: fovea.attention(q, q, q, lengths=[1, -2]), "-2"),
    "documents": (lambda q: fovea.attention(q, q, q, documents=[3, 3]), "documents|within"),
    "mask dtype": (lambda q: fovea.attention(q, q, q, mask=np.ones((9, 9))), "wanted bool"),
    "mask shape": (lambda q: fovea.attention(q, q, q, mask=np.ones((9, 8), bool)), "mask: got one of"),
    "heads of weights": (lambda q: fovea.attention(q, q, q, weights=([7], None)), "there are 4"),
    "order of weights": (lambda q: fovea.attention(q, q, q, weights=([1, 0], None)), "must ascend"),
    "weights": (lambda q: fovea.attention(q, q, q, weights=5), "wanted True or a pair"),
    "dropout": (lambda q: fovea.attention(q, q, q, dropout=1.5, training=True), "dropout"),
    "dropout of top_k": (lambda q: fovea.attention(q, q, q, "dot / full / top_k(2)", dropout=0.5), "soft"),
    "threads": (lambda q: fovea.attention(q, q, q, threads=5000), "1024"),
    "num_threads": (lambda q: fovea.set_num_threads(-4), "wanted 1 to 1024"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_a_value_error(rng, case):
    call, text = BAD[case]
    with pytest.raises(ValueError, match=text):
        call(rng.standard_normal((2, 4, 9, 8)).astype(np.float32))


class Broken:
    def __dlpack__(self, **kwargs):
        raise RuntimeError("out of order")

    def __dlpack_device__(self):
        return 1, 0


def test_what_is_no_array_is_a_type_error(rng):
    q, k, v = arrays(rng)
    with pytest.raises(TypeError, match="q: got NoneType, wanted an array"):
        fovea.attention(None, None, None)
    with pytest.raises(TypeError, match="v: got list, wanted an array"):
        fovea.attention(q, k, v.tolist())
    with pytest.raises(TypeError, match="mask: got list, wanted a bool array"):
        fovea.attention(q, k, v, mask=[True])
    with pytest.raises(ValueError, match="mask: got dtype float32, wanted bool; .* as bias="):
        fovea.attention(q, k, v, mask=np.zeros((1, 1, q.shape[2], k.shape[2]), np.float32))
    with pytest.raises(ValueError, match="k: got a Broken that cannot be read on the CPU: out of order"):
        fovea.attention(q, Broken(), v)


def test_arrays_whose_memory_is_something_else_are_refused(rng):
    q, k, v = arrays(rng)
    with pytest.raises(ValueError, match="q: got dtype >f4, wanted float32"):
        fovea.attention(q.astype(">f4"), k, v)
    records = np.zeros(q.shape, [("x", "f4"), ("y", "i1")])
    with pytest.raises(ValueError, match="wanted multiples of 4"):
        fovea.attention(records["x"], k, v)
    with pytest.raises(ValueError, match="bias: got dtype object"):
        fovea.attention(q, k, v, bias=np.zeros((9, 13), object))
    with pytest.raises(ValueError, match="k is a masked array"):
        fovea.attention(q, np.ma.masked_array(k, mask=k > 1), v)
    for seed in (-1, 2**64):
        with pytest.raises(ValueError, match="got seed="):
            fovea.attention(q, k, v, seed=seed)


def test_tensors_that_want_gradients_are_refused(rng):
    torch = pytest.importorskip("torch")
    q, k, v = arrays(rng)
    with pytest.raises(ValueError, match="k requires a gradient; use fovea.torch.attention"):
        fovea.attention(q, torch.from_numpy(k).requires_grad_(), v)


def test_sizes_beyond_memory_are_errors():
    # Broadcast views of one number: nothing is allocated before the sizes are known to be too large.
    q = np.broadcast_to(np.float32(0), (2**16, 2**6, 2**18, 2**10))
    with pytest.raises((ValueError, MemoryError)):
        fovea.attention(q, q, q)


def test_memory_that_runs_out_is_a_memory_error():
    script = """if True:
        import resource, numpy as np, fovea
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
        zeros = lambda *shape: np.broadcast_to(np.float32(0), shape)
        for call in (lambda: fovea.attention(zeros(1, 1, 2**28, 64), zeros(1, 1, 1, 64).copy(), zeros(1, 1, 1, 64).copy()),
                     lambda: fovea.attention(*[zeros(1, 1, 2**18, 8)] * 3, weights=True)):
            try:
                call()
            except MemoryError as error:
                print(error)
    """
    found = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert found.stdout == "fovea: out of memory\n" * 2


def test_results_do_not_depend_on_threads(rng):
    q, k, v = arrays(rng, queries=200, keys=300, d=32, dv=16)
    one = fovea.attention(q, k, v, "scaled_dot / causal", threads=1)
    np.testing.assert_array_equal(one, fovea.attention(q, k, v, "scaled_dot / causal", threads=2))
    results = [None] * 4

    def work(i):
        results[i] = fovea.attention(q, k, v, "scaled_dot / causal")

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        np.testing.assert_array_equal(result, one)


def test_other_threads_of_python_run_meanwhile():
    q = np.ones((1, 8, 4096, 64), np.float32)
    worker = threading.Thread(target=lambda: fovea.attention(q, q, q, threads=1))
    worker.start()
    turns = 0
    while worker.is_alive():
        turns += 1
        time.sleep(0.001)
    assert turns > 10  # a call that held the GIL would leave one or two


def test_works_after_fork(rng):
    q, k, v = arrays(rng, queries=100, keys=100)
    expected = fovea.attention(q, k, v)  # the parent's threads exist by now
    child = os.fork()
    if child == 0:
        os._exit(0 if (fovea.attention(q, k, v) == expected).all() else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_ten_thousand_calls_leave_no_memory_behind(rng):
    q, k, v = arrays(rng)
    mask = rng.random((9, 13)) < 0.5

    def calls(count):
        for i in range(count):
            fovea.attention(q, k, v, mask=mask, return_lse=True, weights=True)
            fovea.attention(q, k, v, f"scaled_dot / window({i % 50},0)")
            with pytest.raises(ValueError):
                fovea.attention(q, k, v, "nonsense")
        gc.collect()

    calls(500)
    references = [sys.getrefcount(x) for x in (q, k, v, mask)]
    before = resident()
    calls(3334)  # three calls each
    assert [sys.getrefcount(x) for x in (q, k, v, mask)] == references
    assert resident() - before < 4 * 2**20


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def test_import_is_quick_and_leaves_torch_alone():
    # With NumPy's own import. Time of the processor: other programs may be running beside the tests.
    script = "import sys, time; import fovea; print(time.process_time(), 'torch' in sys.modules)"
    empty = "import sys, time; print(time.process_time(), 'torch' in sys.modules)"
    runs = {code: [subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True).stdout.split()
                   for _ in range(5)] for code in (script, empty)}  # fmt: skip
    seconds = {code: min(float(run[0]) for run in found) for code, found in runs.items()}
    assert seconds[script] - seconds[empty] < 0.2
    assert all(run[1] == "False" for run in runs[script])
