"""The ops fovea::attention and fovea::attention_backward, and attention() over them.

The ops are plain functions of tensors (no gradient of their own); gradients come from an autograd.Function around them,
which costs a call less than registering them. Where nobody looks (see _is_direct) the ops are left out as well.
"""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Sequence, Tuple, Union

import torch
from torch import Tensor

from .. import _core
from ..arrays import chosen_weights

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


def _new_results(q: Tensor, v: Tensor, lse: bool) -> Tuple[Tensor, Tensor]:
    """Memory for the output and the log-sum-exp; the second is empty where it is not wanted."""
    try:
        batch, heads, queries, _ = q.shape
        _, _, _, width = v.shape
    except ValueError:
        raise ValueError(
            f"attention: got q {list(q.shape)}, v {list(v.shape)}, wanted [batch, heads, tokens, features] each"
        ) from None
    # [B, Nq, H, Dv] in memory, so that heads join for free.
    out = q.new_empty_strided((batch, heads, queries, width), (queries * heads * width, width, heads * width, 1))
    return out, q.new_empty((batch, heads, queries) if lse else (0,))


def _gradient_like(x: Tensor, is_qkv: bool) -> Tensor:
    # Kernels write q's, k's and v's gradients in any layout whose features are neighbours, the others densely.
    if x.is_contiguous() or is_qkv and (x.stride(-1) == 1 or x.shape[-1] <= 1):
        return torch.empty_like(x)
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


_Places = Tuple[int, ...]  # which argument of the op each tensor is
_Tensors = Tuple[Tensor, ...]


def _without_seed(places: _Places, tensors: _Tensors) -> Tuple[_Places, _Tensors, int]:
    if places[-1] != _SEED:
        return places, tensors, 0
    return places[:-1], tensors[:-1], int(tensors[-1])


def _compute(places: _Places, tensors: _Tensors, options: tuple, lse: bool) -> Tuple[Tensor, Tensor]:
    places, tensors, seed = _without_seed(places, tensors)
    out, sums = _new_results(tensors[0], tensors[2], lse)
    _core.raw_forward(places, tensors, out, sums if lse else None, *options, seed, torch.get_num_threads())
    return out, sums


def _differentiate(
    places: _Places, tensors: _Tensors, options: tuple, out: Tensor, lse: Tensor, d_out: Tensor, wanted: Sequence[bool]
) -> Tuple[Optional[Tensor], ...]:
    """A gradient for each tensor that wants one, None for the others; the seed is not among them."""
    places, tensors, seed = _without_seed(places, tensors)
    gradients = tuple(
        [_gradient_like(x, place < 3) if wants else None for place, x, wants in zip(places, tensors, wanted)]
    )
    _core.raw_backward(places, tensors, out, lse, d_out, gradients, *options, seed, torch.get_num_threads())
    return gradients


# The ops: the arguments of _INPUTS and the seed, then the other _OPTIONS, then their own.


def _given(arguments: Sequence[Any]) -> Tuple[_Places, _Tensors, tuple]:
    """Places, tensors and options from the arguments that all ops share."""
    places = tuple(place for place, x in enumerate(arguments[: _SEED + 1]) if x is not None)
    for x in arguments[:3]:
        if x.dtype is not torch.float32:
            raise ValueError(f"fovea::attention: got {x.dtype}, wanted float32")
    return places, tuple(arguments[place] for place in places), tuple(arguments[_SEED + 1 :])


def _attention_cpu(*arguments):
    *shared, lse = arguments
    return _compute(*_given(shared), lse)


def _attention_fake(*arguments):
    q, _, v, *_, lse = arguments
    return _new_results(q, v, lse)


def _backward_cpu(*arguments):
    *shared, out, lse, d_out, wanted = arguments
    places, tensors, options = _given(shared)
    wanted = [place < _SEED and wanted[place] for place in places]
    return [x for x in _differentiate(places, tensors, options, out, lse, d_out, wanted) if x is not None]


def _backward_fake(*arguments):
    return [_gradient_like(arguments[place], place < 3) for place, wants in enumerate(arguments[-1]) if wants]


def _weights_fake(*arguments):
    q, k, *_, heads, rows = arguments
    return q.new_empty((q.shape[0], len(heads), len(rows), k.shape[2]))


def _weights_cpu(*arguments):
    *shared, heads, rows = arguments
    places, tensors, options = _given(shared)
    places, tensors, seed = _without_seed(places, tensors)
    weights = _weights_fake(*arguments)
    _core.raw_weights(places, tensors, heads, rows, weights, *options, seed, torch.get_num_threads())
    return weights


def _register(name: str, cpu: Callable, fake: Callable) -> Any:
    _library.impl(name, cpu, "CPU")
    torch.library.register_fake(f"fovea::{name}", fake, lib=_library)
    return getattr(torch.ops.fovea, name).default


_forward_op = _register("attention", _attention_cpu, _attention_fake)
_backward_op = _register("attention_backward", _backward_cpu, _backward_fake)
_weights_op = _register("attention_weights", _weights_cpu, _weights_fake)


def _is_direct() -> bool:
    """Whether an op may be left out and its kernel called: nobody traces, fakes, profiles or transforms the calls."""
    return (
        not torch.compiler.is_compiling()
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
        and not torch._C._autograd._profiler_enabled()
    )


def _spread(places: _Places, tensors: Sequence[Tensor]) -> List[Optional[Tensor]]:
    """The tensors as arguments of an op."""
    arrays: List[Optional[Tensor]] = [None] * (_SEED + 1)
    for place, tensor in zip(places, tensors):
        arrays[place] = tensor
    return arrays


class _Attention(torch.autograd.Function):
    # call: all but the tensors, as one argument, since each costs time: places, options, the plan that keeps the mask,
    # whether the call is direct, and whether lse is returned.
    @staticmethod
    def forward(ctx, call, *tensors):
        places, options, _, direct, return_lse = call
        if direct:
            out, lse = _compute(places, tensors, options, True)
        else:
            out, lse = _forward_op(*_spread(places, tensors), *options, True)
        ctx.save_for_backward(out, lse, *tensors)
        ctx.call = call
        if not return_lse:
            return out
        ctx.mark_non_differentiable(lse)
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx, d_out, *_):
        needed = ctx.needs_input_grad[1:]
        if d_out is None:
            return (None,) * (1 + len(needed))
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            raise NotImplementedError("fovea: second derivatives of attention are not implemented")
        saved = ctx.saved_tensors
        out, lse, tensors = saved[0], saved[1], saved[2:]
        places, options, _, _, _ = ctx.call
        if _is_direct():
            found = _differentiate(places, tensors, options, out, lse, d_out, needed)
            return (None, *found, None) if len(found) < len(needed) else (None, *found)
        wanted = [False] * _SEED
        for place, needs in zip(places, needed):
            if needs:
                wanted[place] = True
        found = iter(_backward_op(*_spread(places, tensors), *options, out, lse, d_out, wanted))
        return (None, *(next(found) if needs else None for needs in needed))


# What Function.apply() does after it has looked for transforms, of which there are none where a call is direct.
_direct_apply = super(torch.autograd.Function, _Attention).apply


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
    if tensor.dtype is torch.float32:
        return tensor
    if tensor.dtype not in _LOWER:
        raise ValueError(f"fovea.torch: {name} is {tensor.dtype}, wanted float32, bfloat16 or float16; use .float()")
    return tensor.float()


_kept_masks = torch.utils.weak.WeakIdKeyDictionary()


def plan_mask(mask: Tensor) -> _core.Mask:
    """The mask of a bool tensor, kept as long as the tensor lives and is not changed."""
    kept = _kept_masks.get(mask)
    if kept is not None and kept[0] == mask._version:
        return kept[1]
    if mask.device.type != "cpu":
        raise ValueError(f"fovea.torch: the mask is on {mask.device}, wanted a tensor on the CPU; use .cpu()")
    made = numbered(_core.mask_from_bools(mask.detach().numpy()))
    _kept_masks[mask] = (mask._version, made)
    return made


class NumberedMask(NamedTuple):
    """A mask with the number by which the ops know it as long as `mask` lives."""

    mask: _core.Mask
    number: int


def numbered(mask: _core.Mask) -> NumberedMask:
    return NumberedMask(mask, _core.mask_number(mask))


def _split_mask(mask: Any) -> Tuple[Optional[NumberedMask], Optional[Tensor]]:
    """A bool mask goes into the plan, a float one is added to the scores."""
    if isinstance(mask, NumberedMask):
        return mask, None
    if isinstance(mask, _core.Mask):
        return numbered(mask), None
    if not isinstance(mask, Tensor):
        raise ValueError(f"fovea.torch: the mask is {type(mask).__name__}, wanted a bool or float tensor")
    if mask.dtype is torch.bool:
        if not torch.compiler.is_compiling():
            return plan_mask(mask), None
        mask = torch.zeros(mask.shape).masked_fill(mask.logical_not(), float("-inf"))
    return None, _prepared("mask", mask)


def _counts(counts: Any) -> List[int]:
    return [int(count) for count in (counts.tolist() if isinstance(counts, Tensor) else counts)]


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
    compiled into the plan, once as long as the tensor lives and does not change. dropout_p acts always, as it does in
    scaled_dot_product_attention, and draws from PyTorch's generator; training: hard and gumbel selections draw. The
    other arguments are those of fovea.attention.
    """
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
        tensors.append(torch.randint(2**62, ()))
    options = (
        spec,
        None if lengths is None else _counts(lengths),
        None if query_lengths is None else _counts(query_lengths),
        None if documents is None else _counts(documents),
        0 if plan is None else plan.number,
        dropout_p,
        training,
    )
    places = tuple(places)
    direct = _is_direct()
    if torch.is_grad_enabled() and any([x.requires_grad for x in tensors]):
        apply = _direct_apply if direct else _Attention.apply
        found = apply((places, options, plan, direct, return_lse), *tensors)
        output, lse = found if return_lse else (found, None)
    elif direct:
        output, lse = _compute(places, tuple(tensors), options, return_lse)
    else:
        output, lse = _forward_op(*_spread(places, tensors), *options, return_lse)
    if q.dtype is not torch.float32:
        output = output.to(q.dtype)
    if not return_lse and weights is False:
        return output
    wants_weights, heads, rows = chosen_weights(weights)
    shown = None
    if wants_weights:
        heads, rows = (range(count) if named is None else named for named, count in ((heads, q.shape[1]), (rows, q.shape[2])))
        with torch.no_grad():
            shown = _weights_op(*_spread(places, tensors), *options, list(heads), list(rows))
    return AttentionOutput(output, lse if return_lse else None, shown)
