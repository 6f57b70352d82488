"""The ops fovea::attention and fovea::attention_backward, and attention() over them.

The ops are plain functions of tensors (no gradient of their own); gradients come from an autograd.Function around them,
which costs a call less than registering them. Where nobody looks (see _is_direct) the ops are left out as well. A call of
eight tokens takes a few microseconds, so each line of that way counts: it does in C++ what it can, once for many calls.
"""

from __future__ import annotations

import os
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor
from torch.autograd import forward_ad

from .. import _core
from ..arrays import chosen_weights, whole_numbers

__all__ = ["AttentionOutput", "attention"]

_INPUTS = (
    "Tensor q, Tensor k, Tensor v, Tensor? bias, Tensor? slopes, Tensor? relative, Tensor? position, Tensor? sink, "
    "Tensor? W, Tensor? U, Tensor? b, Tensor? score_vector"
)
_OPTIONS = (
    "Tensor? seed, str spec, int[]? lengths, int[]? query_lengths, int[]? documents, int mask, float dropout, bool training"
)
_SEED = 12  # its place among the arguments, after the inputs

_library = torch.library.Library("fovea", "DEF")
_tags = (torch.Tag.pt2_compliant_tag,)
_library.define(f"attention({_INPUTS}, {_OPTIONS}, bool lse) -> (Tensor, Tensor)", tags=_tags)
_library.define(
    f"attention_backward({_INPUTS}, {_OPTIONS}, Tensor out, Tensor lse, Tensor d_out, bool[] wanted) -> Tensor[]",
    tags=_tags,
)
_library.define(f"attention_weights({_INPUTS}, {_OPTIONS}, int[] heads, int[] rows) -> Tensor", tags=_tags)


def _new_results(q: Tensor, v: Tensor, lse: bool) -> Tuple[Tensor, Optional[Tensor]]:
    """Memory for the output and, where it is wanted, the log-sum-exp."""
    try:
        batch, heads, queries, _ = q.shape
        _, _, _, width = v.shape
    except ValueError:
        raise ValueError(
            f"attention: got q {list(q.shape)}, v {list(v.shape)}, wanted [batch, heads, tokens, features] each"
        ) from None
    row = heads * width
    # [B, Nq, H, Dv] in memory, so that heads join for free.
    out = q.new_empty_strided((batch, heads, queries, width), (queries * row, width, row, 1))
    return out, q.new_empty_strided((batch, heads, queries), (heads * queries, queries, 1)) if lse else None


def _gradient_like(x: Tensor, is_qkv: bool) -> Tensor:
    # Kernels write q's, k's and v's gradients in any layout whose features are neighbours, the others densely.
    if x.is_contiguous() or is_qkv and (x.stride(-1) == 1 or x.shape[-1] <= 1):
        return torch.empty_like(x)
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


# Options and places (which argument of an op each tensor is) of a call: places, then those of _OPTIONS that are no tensors.
_Key = Tuple[Any, ...]
_Tensors = Tuple[Tensor, ...]

_Called = Tuple[_core.Call, _Key]
_MOST_CALLS = 256
_calls: Dict[Any, _Called] = {}


def _call_of(key: _Key, calls: Dict[Any, _Called], name: Any = None) -> _Called:
    """The same object for the same key. calls: lives no longer than the mask whose number is in the key. name: instead of the key."""
    called = calls.get(name or key)
    if called is None:
        if len(calls) >= _MOST_CALLS:
            calls.clear()
        called = calls[name or key] = (_core.Call(*key), key)
    return called


def _compute(call: _core.Call, tensors: _Tensors, lse: bool) -> Tuple[Tensor, Optional[Tensor]]:
    out, sums = _new_results(tensors[0], tensors[2], lse)
    call.forward(tensors, out, sums, _threads())
    return out, sums


def _share_threads() -> None:
    """PyTorch's OpenMP workers spin for milliseconds after each of its functions; threads of our own would run beside them."""
    if torch.backends.openmp.is_available() and "parallel backend: OpenMP" in torch.__config__.parallel_info():
        _core.use_openmp_of(os.path.join(os.path.dirname(torch.__file__), "lib", "libtorch_cpu.so"))


_share_threads()

_QKV = (0, 1, 2)  # places
_are_ready = _core.are_ready
_threads = torch.get_num_threads
_empty_like = torch.empty_like

# The ops: the arguments of _INPUTS and the seed, then the other _OPTIONS, then their own.


def _require_float32(*tensors: Tensor) -> None:
    for x in tensors:
        if x.dtype is not torch.float32:
            raise ValueError(f"fovea::attention: got {x.dtype}, wanted float32")


def _given(arguments: Sequence[Any]) -> Tuple[_core.Call, _Tensors]:
    """What is called, and with which tensors, from the arguments that all ops share."""
    places = tuple(place for place, x in enumerate(arguments[: _SEED + 1]) if x is not None)
    _require_float32(*(arguments[place] for place in places if place != _SEED))
    options = (tuple(x) if isinstance(x, list) else x for x in arguments[_SEED + 1 :])
    return _core.Call(places, *options), tuple(arguments[place] for place in places)


def _attention_cpu(*arguments):
    *shared, lse = arguments
    call, tensors = _given(shared)
    out, sums = _compute(call, tensors, lse)
    return out, out.new_empty(0) if sums is None else sums


def _attention_fake(*arguments):
    q, _, v, *_, lse = arguments
    out, sums = _new_results(q, v, lse)
    return out, out.new_empty(0) if sums is None else sums


def _backward_cpu(*arguments):
    *shared, out, lse, d_out, wanted = arguments
    call, tensors = _given(shared)
    _require_float32(out, lse, d_out)
    wanted = [wants for x, wants in zip(shared, (*wanted, False)) if x is not None]
    found = call.backward((out, *tensors), lse, d_out, (False, *wanted), _empty_like, _gradient_like, _threads)
    return [x for x in found if x is not None]


def _backward_fake(*arguments):
    return [_gradient_like(arguments[place], place < 3) for place, wants in enumerate(arguments[-1]) if wants]


def _weights_fake(*arguments):
    q, k, *_, heads, rows = arguments
    return q.new_empty((q.shape[0], len(heads), len(rows), k.shape[2]))


def _weights_cpu(*arguments):
    *shared, heads, rows = arguments
    call, tensors = _given(shared)
    weights = _weights_fake(*arguments)
    call.weights(tensors, heads, rows, weights, _threads())
    return weights


def _register(name: str, cpu: Callable, fake: Callable) -> Any:
    _library.impl(name, cpu, "CPU")
    torch.library.register_fake(f"fovea::{name}", fake, lib=_library)
    return getattr(torch.ops.fovea, name).default


_forward_op = _register("attention", _attention_cpu, _attention_fake)
_backward_op = _register("attention_backward", _backward_cpu, _backward_fake)
_weights_op = _register("attention_weights", _weights_cpu, _weights_fake)


_is_compiling = torch.compiler.is_compiling
_dispatch_modes = torch._C._len_torch_dispatch_stack
_transforms = torch._C._functorch.peek_interpreter_stack
_is_profiled = torch._C._autograd._profiler_enabled
_tracing_state = torch._C._get_tracing_state


def _is_direct() -> bool:
    """Whether an op may be left out and its kernel called: nobody traces, fakes, profiles or transforms the calls."""
    return (
        not _is_compiling() and _dispatch_modes() == 0 and _transforms() is None and not _is_profiled()
        and _tracing_state() is None and forward_ad._current_level < 0
    )  # fmt: skip


def _is_recorded() -> bool:
    """Whether calls are written down to be repeated with other tensors: a plan made of a mask's values must not be part of them."""
    return _is_compiling() or _dispatch_modes() > 0 or _tracing_state() is not None


def _distinct(tensors: Tuple[Tensor, ...]) -> Tuple[Tensor, ...]:
    """The tensors, those that occur before as views: torch.compile() refuses functions of one tensor twice."""
    return tuple([x.view_as(x) if any([x is y for y in tensors[:i]]) else x for i, x in enumerate(tensors)])


_PLAIN_TYPES = (Tensor, torch.nn.Parameter)
_core.set_plain_types(_PLAIN_TYPES)


def _are_plain(tensors: Sequence[Tensor]) -> bool:
    """Whether the numbers of each tensor lie in its memory as they are. Subclasses may wrap other tensors; the imaginary part of
    a conjugated tensor is stored with the other sign; zeros that autograd makes have no memory. Ops see to all of these."""
    return all([type(x) in _PLAIN_TYPES and not x.is_neg() and not x._is_zerotensor() for x in tensors])


_FUNCTIONALIZE = torch._C._functorch.TransformType.Functionalize


def _refuse_transforms() -> None:
    """vmap() would run, and lose the gradients."""
    transform = None if _is_compiling() else _transforms()
    if transform is not None and transform.key() != _FUNCTIONALIZE:
        raise NotImplementedError(
            "fovea: attention has no rules for vmap, grad and other transforms of torch.func; call it on the whole batch, and "
            "use torch.autograd"
        )


def _refuse_tangents(tensors: Sequence[Tensor]) -> None:
    """Ops would drop them."""
    for x in tensors:
        if forward_ad.unpack_dual(x).tangent is not None:
            raise NotImplementedError("fovea: forward-mode derivatives of attention are not implemented")


def _spread(places: Sequence[int], tensors: Sequence[Tensor]) -> List[Optional[Tensor]]:
    """The tensors as arguments of an op."""
    arrays: List[Optional[Tensor]] = [None] * (_SEED + 1)
    for place, tensor in zip(places, tensors):
        arrays[place] = tensor
    return arrays


def _refuse_second_derivatives() -> None:
    raise NotImplementedError("fovea: second derivatives of attention are not implemented")


class _Attention(torch.autograd.Function):
    """Through the ops, where somebody looks, and with lse."""

    # key, plan: not tensors; plan keeps the mask that the key names.
    @staticmethod
    def forward(ctx, key, plan, return_lse, *tensors):
        places, *options = key
        out, lse = _forward_op(*_spread(places, tensors), *options, True)
        ctx.save_for_backward(out, lse, *tensors)
        ctx.key, ctx.plan = key, plan
        if not return_lse:
            return out
        ctx.mark_non_differentiable(lse)
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx, d_out, *_):
        needed = ctx.needs_input_grad[3:]
        if d_out is None:
            return (None,) * (3 + len(needed))
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            _refuse_second_derivatives()
        return (None, None, None, *_through_op(ctx.key, ctx.saved_tensors, needed, d_out))


def _through_op(key: _Key, saved: _Tensors, needed: Sequence[bool], d_out: Tensor) -> Tuple[Optional[Tensor], ...]:
    (places, *options), (out, lse, *tensors) = key, saved
    wanted = [False] * _SEED
    for place, needs in zip(places, needed):
        if needs:
            wanted[place] = True
    found = iter(_backward_op(*_spread(places, tensors), *options, out, lse, d_out, wanted))
    return tuple(next(found) if needs else None for needs in needed)


class _DirectAttention(torch.autograd.Function):
    """Without the ops, where nobody looks. One argument beside the tensors, since each costs time: the call and its key."""

    @staticmethod
    def forward(ctx, called, *tensors):
        out, lse = called[0].output_and_lse(tensors, _empty_like, _threads)
        ctx.save_for_backward(out, *tensors)
        ctx.called = (called, lse)
        return out

    @staticmethod
    def backward(ctx, d_out):
        if _grad_enabled():
            _refuse_second_derivatives()
        (call, key), lse = ctx.called
        if _is_direct() and type(d_out) is Tensor and not d_out.is_neg():
            return call.backward(ctx.saved_tensors, lse, d_out, ctx.needs_input_grad, _empty_like, _gradient_like, _threads)
        # lse is no tensor here: the op computes it again.
        (places, *options), (_, *tensors) = key, ctx.saved_tensors
        out, lse = _forward_op(*_spread(places, tensors), *options, True)
        return (None, *_through_op(key, (out, lse, *tensors), ctx.needs_input_grad[1:], d_out))


_grad_enabled = torch.is_grad_enabled
# What Function.apply() does after it has looked for transforms, of which there are none where a call is direct; and what
# the engine's call of backward() comes to after it has looked which of its two names it has.
_direct_apply = super(torch.autograd.Function, _DirectAttention).apply
if hasattr(_DirectAttention, "_backward_cls"):
    _DirectAttention._backward_cls.apply = _DirectAttention.backward


class AttentionOutput(NamedTuple):
    """What attention() returns when more than the output is asked for."""

    output: Tensor  # [B, H, Nq, Dv]
    lse: Optional[Tensor]  # [B, H, Nq]; no gradient goes through it
    weights: Optional[Tensor]  # [B, heads, rows, Nk]; no gradient goes through them


_LOWER = (torch.bfloat16, torch.float16)
_NAMES = ("q", "k", "v", "bias", "slopes", "relative", "position", "sink", "W", "U", "b", "score_vector")


def _prepared(name: str, tensor: Tensor) -> Tensor:
    """float32 on the CPU: itself, or converted from 16 bits."""
    if not isinstance(tensor, Tensor):
        raise ValueError(f"fovea.torch: {name} is {type(tensor).__name__}, wanted a tensor")
    if not tensor.is_cpu:
        raise ValueError(f"fovea.torch: {name} is on {tensor.device}, wanted a tensor on the CPU; use .cpu()")
    if tensor.layout is not torch.strided or tensor.is_nested:
        raise ValueError(f"fovea.torch: {name} is a sparse or nested tensor, wanted a dense one")
    if tensor.dtype is torch.float32:
        return tensor
    if tensor.dtype not in _LOWER:
        raise ValueError(f"fovea.torch: {name} is {tensor.dtype}, wanted float32, bfloat16 or float16; use .float()")
    return tensor.float()


_kept_masks = torch.utils.weak.WeakIdKeyDictionary()


def plan_mask(mask: Tensor) -> _core.Mask:
    """The mask of a bool tensor, kept as long as the tensor lives and is not changed."""
    counts_changes = not mask.is_inference()
    kept = _kept_masks.get(mask) if counts_changes else None
    if kept is not None and kept[0] == mask._version:
        return kept[1]
    if mask.device.type != "cpu":
        raise ValueError(f"fovea.torch: the mask is on {mask.device}, wanted a tensor on the CPU; use .cpu()")
    if mask.layout is not torch.strided or mask.is_nested:
        raise ValueError("fovea.torch: the mask is a sparse or nested tensor, wanted a dense one")
    made = numbered(_core.mask_from_bools(mask.detach().numpy()))
    if counts_changes:
        _kept_masks[mask] = (mask._version, made)
    return made


class NumberedMask(NamedTuple):
    """A mask with the number by which the ops know it as long as `mask` lives, and the calls that name it."""

    mask: _core.Mask
    number: int
    calls: Dict[Any, _Called]


def numbered(mask: _core.Mask) -> NumberedMask:
    return NumberedMask(mask, _core.mask_number(mask), {})


def _split_mask(mask: Any) -> Tuple[Optional[NumberedMask], Optional[Tensor]]:
    """A bool mask goes into the plan, a float one is added to the scores."""
    if isinstance(mask, NumberedMask):
        return mask, None
    if isinstance(mask, _core.Mask):
        return numbered(mask), None
    if not isinstance(mask, Tensor):
        raise ValueError(f"fovea.torch: the mask is {type(mask).__name__}, wanted a bool or float tensor")
    if mask.dtype is torch.bool:
        if not _is_recorded():
            return plan_mask(mask), None
        mask = torch.zeros(mask.shape, dtype=torch.float32, device=mask.device).masked_fill(mask.logical_not(), float("-inf"))
    return None, _prepared("mask", mask)


def attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    spec: str = "scaled_dot / full / soft",
    *,
    mask: Any = None,
    bias: Optional[Tensor] = None,
    slopes: Optional[Tensor] = None,
    relative: Optional[Tensor] = None,
    position: Optional[Tensor] = None,
    sink: Optional[Tensor] = None,
    W: Optional[Tensor] = None,
    U: Optional[Tensor] = None,
    b: Optional[Tensor] = None,
    score_vector: Optional[Tensor] = None,
    lengths: Union[Sequence[int], Tensor, None] = None,
    query_lengths: Union[Sequence[int], Tensor, None] = None,
    documents: Union[Sequence[int], Tensor, None] = None,
    dropout_p: float = 0.0,
    training: bool = False,
    return_lse: bool = False,
    weights: Union[bool, Tuple[Any, Any]] = False,
) -> Union[Tensor, AttentionOutput]:
    """Attention of any kind with gradients: fovea.attention for tensors, in the layout of scaled_dot_product_attention.

    q: [B, H, Nq, D], k: [B, Hk, Nk, D], v: [B, Hk, Nk, Dv] on the CPU; Hk divides H. float32; bfloat16 and float16 are
    converted to float32 and back. Gradients reach q, k, v and every other float tensor but a bool mask.

    mask: bool, True where a query may attend, or float, added to the scores; broadcast to [B, H, Nq, Nk]. A bool mask is
    compiled into the plan, once as long as the tensor lives and does not change (changes through .data, or through a NumPy
    array that shares its memory, are not seen: PyTorch does not count them). dropout_p acts always, as it does in
    scaled_dot_product_attention, and draws from PyTorch's generator; training: hard and gumbel selections draw. The
    other arguments are those of fovea.attention.
    """
    direct = _is_direct()
    if (
        direct and mask is None and bias is None and slopes is None and relative is None and position is None and sink is None
        and W is None and U is None and b is None and score_vector is None and lengths is None and query_lengths is None
        and documents is None and not dropout_p and not training and not return_lse and not weights and _are_ready(q, k, v)
        and not (q.is_neg() or k.is_neg() or v.is_neg())
    ):  # fmt: skip
        called = _calls.get(spec) or _call_of((_QKV, spec, None, None, None, 0, 0.0, False), _calls, spec)
        if _grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
            return _direct_apply(called, q, k, v)
        return called[0].output((q, k, v), _empty_like, _threads)
    if not direct:
        _refuse_transforms()
    places = [0, 1, 2]
    tensors = [_prepared("q", q), _prepared("k", k), _prepared("v", v)]
    for place, given in enumerate((bias, slopes, relative, position, sink, W, U, b, score_vector), 3):
        if given is not None:
            places.append(place)
            tensors.append(_prepared(_NAMES[place], given))
    plan = None
    if mask is not None:
        plan, added = _split_mask(mask)
        if added is not None and bias is not None:
            tensors[3] = tensors[3] + added
        elif added is not None:
            places.insert(3, 3)
            tensors.insert(3, added)
    if training or dropout_p > 0:
        training = True
        places.append(_SEED)
        tensors.append(torch.randint(2**62, (), dtype=torch.int64, device="cpu"))
    key = (
        tuple(places),
        spec,
        whole_numbers("lengths", lengths),
        whole_numbers("query_lengths", query_lengths),
        whole_numbers("documents", documents),
        0 if plan is None else plan.number,
        dropout_p,
        training,
    )
    tensors = tuple(tensors)
    direct = direct and _are_plain(tensors)
    if forward_ad._current_level >= 0:
        _refuse_tangents(tensors)
    lse = None
    differentiable = torch.is_grad_enabled() and any([x.requires_grad for x in tensors])
    if not direct or (return_lse and differentiable):
        if differentiable:
            if _is_compiling():
                tensors = _distinct(tensors)
            found = _Attention.apply(key, plan, return_lse, *tensors)
            output, lse = found if return_lse else (found, None)
        else:
            output, lse = _forward_op(*_spread(key[0], tensors), *key[1:], return_lse)
    else:
        called = _call_of(key, _calls if plan is None else plan.calls)
        if differentiable:
            output = _direct_apply(called, *tensors)
        else:
            output, lse = _compute(called[0], tensors, return_lse)
    if q.dtype is not torch.float32:
        output = output.to(q.dtype)
    if not return_lse and weights is False:
        return output
    wants_weights, heads, rows = chosen_weights(weights)
    shown = None
    if wants_weights:
        heads, rows = (range(count) if named is None else named for named, count in ((heads, q.shape[1]), (rows, q.shape[2])))
        with torch.no_grad():
            shown = _weights_op(*_spread(places, tensors), *key[1:], list(heads), list(rows))
    return AttentionOutput(output, lse if return_lse else None, shown)
