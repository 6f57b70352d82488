"""The ops fovea::attention and fovea::attention_backward, and attention() over them.

The ops are plain functions of tensors (no gradient of their own); gradients come from an autograd.Function around them,
which costs a call less than registering them. Tensors reach C++ as pointers, sizes and strides.
"""

from __future__ import annotations

from typing import Any, List, NamedTuple, Optional, Sequence, Tuple, Union

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
_INPUT_COUNT = 12

_library = torch.library.Library("fovea", "DEF")
_tags = (torch.Tag.pt2_compliant_tag,)
_library.define(f"attention({_INPUTS}, {_OPTIONS}, bool lse) -> (Tensor, Tensor)", tags=_tags)
_library.define(
    f"attention_backward({_INPUTS}, {_OPTIONS}, Tensor out, Tensor lse, Tensor d_out, bool[] wanted) -> Tensor[]",
    tags=_tags,
)
_library.define(f"attention_weights({_INPUTS}, {_OPTIONS}, int[] heads, int[] rows) -> Tensor", tags=_tags)


def _raw(tensors: Sequence[Optional[Tensor]]) -> list:
    return [None if x is None else (x.data_ptr(), x.shape, x.stride()) for x in tensors]


def _check(q, k, v) -> None:
    if q.dtype is not torch.float32 or k.dtype is not torch.float32 or v.dtype is not torch.float32:
        raise ValueError(f"fovea::attention: got {q.dtype}, {k.dtype} and {v.dtype}, wanted float32")


def _new_output(q: Tensor, v: Tensor) -> Tensor:
    # [B, Nq, H, Dv] in memory, so that heads join for free.
    batch, heads, queries, _ = q.shape
    width = v.shape[3]
    return torch.empty_strided(
        (batch, heads, queries, width), (queries * heads * width, width, heads * width, 1), dtype=q.dtype, device=q.device
    )


def _new_lse(q: Tensor, lse: bool) -> Tensor:
    return torch.empty(q.shape[:3] if lse else (0,), dtype=q.dtype, device=q.device)


def _gradient_like(x: Tensor, is_qkv: bool) -> Tensor:
    # Kernels write q's, k's and v's gradients in any layout whose features are neighbours, the others densely.
    if is_qkv and (x.shape[-1] <= 1 or x.stride(-1) == 1):
        return torch.empty_like(x)
    return torch.empty(x.shape, dtype=x.dtype, device=x.device)


def _seed(seed: Optional[Tensor]) -> int:
    return 0 if seed is None else int(seed)


def _shapes(q: Tensor, k: Tensor, v: Tensor) -> None:
    # Before memory is taken for results: the kernels' own checks come after.
    if q.dim() != 4 or k.dim() != 4 or v.dim() != 4:
        raise ValueError(
            f"attention: got q {list(q.shape)}, k {list(k.shape)}, v {list(v.shape)}, "
            "wanted [batch, heads, tokens, features] each"
        )


def _attention_cpu(q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector,
                   seed, spec, lengths, query_lengths, documents, mask, dropout, training, lse):  # fmt: skip
    _shapes(q, k, v)
    _check(q, k, v)
    out = _new_output(q, v)
    sums = _new_lse(q, lse)
    *inputs, result = _raw((q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector, out))
    _core.raw_forward(
        inputs, result, sums.data_ptr() if lse else 0, spec, lengths, query_lengths, documents, mask, dropout,
        _seed(seed), training, torch.get_num_threads(),
    )  # fmt: skip
    return out, sums


def _attention_fake(q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector,
                    seed, spec, lengths, query_lengths, documents, mask, dropout, training, lse):  # fmt: skip
    _shapes(q, k, v)
    return _new_output(q, v), _new_lse(q, lse)


def _backward_cpu(q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector,
                  seed, spec, lengths, query_lengths, documents, mask, dropout, training,
                  out, lse, d_out, wanted):  # fmt: skip
    _check(q, k, v)
    inputs = (q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector)
    gradients: List[Optional[Tensor]] = [
        _gradient_like(x, i < 3) if wants else None for i, (x, wants) in enumerate(zip(inputs, wanted))
    ]
    *raw, result, upstream = _raw((*inputs, out, d_out))
    _core.raw_backward(
        raw, result, lse.data_ptr(), upstream, _raw(gradients), spec, lengths,
        query_lengths, documents, mask, dropout, _seed(seed), training, torch.get_num_threads(),
    )  # fmt: skip
    return [gradient for gradient in gradients if gradient is not None]


def _backward_fake(q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector,
                   seed, spec, lengths, query_lengths, documents, mask, dropout, training,
                   out, lse, d_out, wanted):  # fmt: skip
    inputs = (q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector)
    return [_gradient_like(x, i < 3) for i, (x, wants) in enumerate(zip(inputs, wanted)) if wants]


def _weights_cpu(q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector,
                 seed, spec, lengths, query_lengths, documents, mask, dropout, training, heads, rows):  # fmt: skip
    _shapes(q, k, v)
    _check(q, k, v)
    weights = q.new_empty((q.shape[0], len(heads), len(rows), k.shape[2]))
    inputs = (q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector)
    _core.raw_weights(
        _raw(inputs), heads, rows, weights.data_ptr(), spec, lengths, query_lengths, documents, mask,
        dropout, _seed(seed), training, torch.get_num_threads(),
    )  # fmt: skip
    return weights


def _weights_fake(q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector,
                  seed, spec, lengths, query_lengths, documents, mask, dropout, training, heads, rows):  # fmt: skip
    return q.new_empty((q.shape[0], len(heads), len(rows), k.shape[2]))


_library.impl("attention_weights", _weights_cpu, "CPU")
torch.library.register_fake("fovea::attention_weights", _weights_fake, lib=_library)
_weights_op = torch.ops.fovea.attention_weights.default
_library.impl("attention", _attention_cpu, "CPU")
_library.impl("attention_backward", _backward_cpu, "CPU")
torch.library.register_fake("fovea::attention", _attention_fake, lib=_library)
torch.library.register_fake("fovea::attention_backward", _backward_fake, lib=_library)
_forward_op = torch.ops.fovea.attention.default
_backward_op = torch.ops.fovea.attention_backward.default


def _is_direct() -> bool:
    """Whether an op may be left out and its kernel called: nobody traces, fakes, profiles or transforms the calls."""
    return (
        not torch.compiler.is_compiling()
        and torch._C._len_torch_dispatch_stack() == 0
        and torch._C._functorch.peek_interpreter_stack() is None
        and not torch._C._autograd._profiler_enabled()
    )


_ARRAYS = _INPUT_COUNT + 1  # and the seed


def _spread(places: Tuple[int, ...], tensors: Sequence[Tensor]) -> List[Optional[Tensor]]:
    """The arguments of an op from those that are given, each with its place."""
    arrays: List[Optional[Tensor]] = [None] * _ARRAYS
    for place, tensor in zip(places, tensors):
        arrays[place] = tensor
    return arrays


class _Attention(torch.autograd.Function):
    # Only tensors that are given are passed: each argument of apply() costs time. places: which they are.
    @staticmethod
    def forward(ctx, places, options, keeper, *tensors):
        arrays = _spread(places, tensors)
        out, lse = (_attention_cpu if _is_direct() else _forward_op)(*arrays, *options, True)
        ctx.save_for_backward(out, lse, *tensors)
        ctx.places, ctx.options, ctx.keeper = places, options, keeper
        ctx.mark_non_differentiable(lse)
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx, d_out, _):
        needed = ctx.needs_input_grad[3:]
        if d_out is None:
            return (None,) * (3 + len(needed))
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            raise NotImplementedError("fovea: second derivatives of attention are not implemented")
        out, lse, *tensors = ctx.saved_tensors
        wanted = [False] * _INPUT_COUNT
        for place, needs in zip(ctx.places, needed):
            if needs:
                wanted[place] = True
        backward = _backward_cpu if _is_direct() else _backward_op
        found = iter(backward(*_spread(ctx.places, tensors), *ctx.options, out, lse, d_out, wanted))
        return (None, None, None, *(next(found) if needs else None for needs in needed))


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
    given = (q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector)
    places = [0, 1, 2]
    tensors = [_prepared("q", q), _prepared("k", k), _prepared("v", v)]
    for place in range(3, _INPUT_COUNT):
        if given[place] is not None:
            places.append(place)
            tensors.append(_prepared(_NAMES[place], given[place]))
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
        places.append(_INPUT_COUNT)
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
    if torch.is_grad_enabled() and any([x.requires_grad for x in tensors]):
        output, lse = _Attention.apply(tuple(places), options, plan, *tensors)
    else:
        forward = _attention_cpu if _is_direct() else _forward_op
        output, lse = forward(*_spread(places, tensors), *options, return_lse)
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
