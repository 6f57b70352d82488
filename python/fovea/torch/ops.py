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


def _raw(tensor: Optional[Tensor]):
    return None if tensor is None else (tensor.data_ptr(), tensor.shape, tensor.stride())


def _check(q, k, v) -> None:
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dtype is not torch.float32 or tensor.device.type != "cpu":
            raise ValueError(f"fovea::attention: {name} is {tensor.dtype} on {tensor.device}, wanted float32 on the CPU")


def _new_output(q: Tensor, v: Tensor) -> Tensor:
    # [B, Nq, H, Dv] in memory, so that heads join for free.
    return q.new_empty((q.shape[0], q.shape[2], q.shape[1], v.shape[3])).transpose(1, 2)


def _new_lse(q: Tensor, lse: bool) -> Tensor:
    return q.new_empty(q.shape[:3] if lse else (0,))


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
    inputs = [_raw(q), _raw(k), _raw(v), _raw(bias), _raw(slopes), _raw(relative), _raw(position), _raw(sink),
              _raw(W), _raw(U), _raw(b), _raw(score_vector)]  # fmt: skip
    _core.raw_forward(
        inputs, _raw(out), sums.data_ptr() if lse else 0, spec, lengths, query_lengths, documents, mask, dropout,
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
    _core.raw_backward(
        [_raw(x) for x in inputs], _raw(out), lse.data_ptr(), _raw(d_out), [_raw(x) for x in gradients], spec, lengths,
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
        [_raw(x) for x in inputs], heads, rows, weights.data_ptr(), spec, lengths, query_lengths, documents, mask,
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


class _Attention(torch.autograd.Function):
    @staticmethod
    def forward(ctx, q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector,
                seed, spec, lengths, query_lengths, documents, mask, dropout, training, keeper):  # fmt: skip
        out, lse = _forward_op(q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector,
                               seed, spec, lengths, query_lengths, documents, mask, dropout, training, True)  # fmt: skip
        ctx.save_for_backward(q, k, v, bias, slopes, relative, position, sink, W, U, b, score_vector, seed, out, lse)
        ctx.options = (spec, lengths, query_lengths, documents, mask, dropout, training)
        ctx.keeper = keeper
        ctx.mark_non_differentiable(lse)
        ctx.set_materialize_grads(False)
        return out, lse

    @staticmethod
    def backward(ctx, d_out, _):
        wanted = list(ctx.needs_input_grad[:_INPUT_COUNT])
        nothing = (None,) * 9
        if d_out is None:
            return (None,) * _INPUT_COUNT + nothing
        if torch.is_grad_enabled() and not torch.compiler.is_compiling():
            raise NotImplementedError("fovea: second derivatives of attention are not implemented")
        *inputs, seed, out, lse = ctx.saved_tensors
        found = iter(_backward_op(*inputs, seed, *ctx.options, out, lse, d_out, wanted))
        return tuple(next(found) if wants else None for wants in wanted) + nothing


class AttentionOutput(NamedTuple):
    """What attention() returns when more than the output is asked for."""

    output: Tensor  # [B, H, Nq, Dv]
    lse: Optional[Tensor]  # [B, H, Nq]; no gradient goes through it
    weights: Optional[Tensor]  # [B, heads, rows, Nk]; no gradient goes through them


_LOWER = (torch.bfloat16, torch.float16)
_NAMES = ("q", "k", "v", "bias", "slopes", "relative", "position", "sink", "W", "U", "b", "score_vector")


def _prepared(name: str, tensor: Optional[Tensor]) -> Optional[Tensor]:
    """float32 on the CPU: itself, or converted from 16 bits."""
    if tensor is None and name not in ("q", "k", "v"):
        return None
    if not isinstance(tensor, Tensor):
        raise ValueError(f"fovea.torch: {name} is {type(tensor).__name__}, wanted a tensor")
    if tensor.device.type != "cpu":
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


def _split_mask(mask: Any, bias: Optional[Tensor]) -> Tuple[Optional[NumberedMask], Optional[Tensor]]:
    """A bool mask goes into the plan, a float one is a bias."""
    if mask is None or isinstance(mask, NumberedMask):
        return mask, bias
    if isinstance(mask, _core.Mask):
        return numbered(mask), bias
    if not isinstance(mask, Tensor):
        raise ValueError(f"fovea.torch: the mask is {type(mask).__name__}, wanted a bool or float tensor")
    if mask.dtype is torch.bool:
        if not torch.compiler.is_compiling():
            return plan_mask(mask), bias
        mask = torch.zeros(mask.shape).masked_fill(mask.logical_not(), float("-inf"))
    mask = _prepared("mask", mask)
    return None, mask if bias is None else bias + mask


def _counts(counts: Any) -> Optional[List[int]]:
    if counts is None:
        return None
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
    wants_weights, heads, rows = chosen_weights(weights)
    dtype = getattr(q, "dtype", None)
    parameters = (bias, slopes, relative, position, sink, W, U, b, score_vector)
    arrays = [_prepared(name, tensor) for name, tensor in zip(_NAMES, (q, k, v, *parameters))]
    plan, arrays[3] = _split_mask(mask, arrays[3])
    training = training or dropout_p > 0
    options = (
        torch.randint(2**62, ()) if training else None, spec, _counts(lengths), _counts(query_lengths),
        _counts(documents), plan.number if plan else 0, dropout_p, training,
    )  # fmt: skip
    if torch.is_grad_enabled() and any(x is not None and x.requires_grad for x in arrays):
        output, lse = _Attention.apply(*arrays, *options, plan)
    else:
        output, lse = _forward_op(*arrays, *options, return_lse)
    if dtype is not torch.float32:
        output = output.to(dtype)
    if not return_lse and not wants_weights:
        return output
    shown = None
    if wants_weights:
        with torch.no_grad():
            shown = _weights_op(
                *arrays, *options, range(q.shape[1]) if heads is None else heads,
                range(q.shape[2]) if rows is None else rows,
            )  # fmt: skip
    return AttentionOutput(output, lse if return_lse else None, shown)
