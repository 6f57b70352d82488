"""attn_implementation="fovea" for Hugging Face models.

    import fovea.transformers
    fovea.transformers.register()
    model = AutoModel.from_pretrained(name, attn_implementation="fovea")

Both the attention and the mask interface are registered: without the second, Transformers passes no mask at all. Causal
masks, sliding windows and padding go into the plan; no mask of queries x keys is made.
"""

from __future__ import annotations

from typing import Any, Callable, List, NamedTuple, Optional, Tuple

import torch
from torch import Tensor

from . import _core
from .torch.ops import NumberedMask, attention, numbered

__all__ = ["PlannedMask", "register"]


class PlannedMask:
    """Takes the place of the mask tensor on its way through a model: a pattern, and a mask where a pattern cannot say it."""

    ndim = 4

    def __init__(self, pattern: str, mask: Optional[NumberedMask], shape: Tuple[int, int, int, int]) -> None:
        self.pattern, self.mask, self.shape = pattern, mask, torch.Size(shape)

    def dim(self) -> int:
        return 4

    # What is done to masks on their way, to which a plan has nothing to change.
    def to(self, *args: Any, **kwargs: Any) -> "PlannedMask":
        return self

    contiguous = clone = detach = to

    def __repr__(self) -> str:
        return f"PlannedMask({self.pattern!r}, shape={tuple(self.shape)})"


def _parts(mask_function: Callable) -> List[Callable]:
    """The functions that and_masks() joined, or the function itself."""
    if getattr(mask_function, "__qualname__", "") == "and_masks.<locals>.and_mask":
        joined = dict(zip(mask_function.__code__.co_freevars, mask_function.__closure__))["mask_functions"].cell_contents
        return [part for function in joined for part in _parts(function)]
    return [mask_function]


def _window_of(part: Callable, overlay: str) -> Optional[int]:
    """The size inside a window's overlay of Transformers; None: it is something else."""
    if getattr(part, "__qualname__", "") != f"{overlay}.<locals>.inner_mask":
        return None
    if part.__code__.co_freevars != ("sliding_window",):
        return None
    return int(part.__closure__[0].cell_contents)


def _pattern_of(mask_function: Callable, offset: int, q_length: int, kv_length: int) -> Optional[str]:
    """The pattern that a mask function of Transformers means; None: only its values can tell.

    offset: of the first query's position from the first key's.
    """
    from transformers import masking_utils

    if offset == kv_length - q_length:
        align = ""
    elif offset == 0:
        align = "top_left"
    else:
        return None
    causal, left, both = False, None, None
    for part in _parts(mask_function):
        if part is masking_utils.causal_mask_function:
            causal = True
        elif (size := _window_of(part, "sliding_window_overlay")) is not None:
            left = size if left is None else min(left, size)
        elif (size := _window_of(part, "sliding_window_bidirectional_overlay")) is not None:
            both = size if both is None else min(both, size)
        elif part is not masking_utils.bidirectional_mask_function:
            return None
    patterns = []
    suffix = f",1,{align}" if align else ""
    if left is not None:
        if not causal or left < 1:
            return None
        patterns.append(f"window({left - 1},0{suffix})")
    elif causal:
        patterns.append(f"causal({align})" if align else "causal")
    if both is not None:
        patterns.append(f"window({both},{both}{suffix})")
    return " & ".join(patterns) or "full"


# Rows whose mask is evaluated at once where only values can tell: no mask of all queries and keys is made.
_ROWS_AT_ONCE = 256


@torch.no_grad()
def _evaluated(mask_function: Callable, batch: int, q_length: int, kv_length: int, q_offset: int, kv_offset: int) -> Any:
    b = torch.arange(batch)[:, None, None, None]
    h = torch.zeros(1, 1, 1, 1, dtype=torch.long)
    k = (torch.arange(kv_length) + kv_offset)[None, None, None, :]
    rows = []
    for begin in range(0, q_length, _ROWS_AT_ONCE):
        q = (torch.arange(begin, min(begin + _ROWS_AT_ONCE, q_length)) + q_offset)[None, None, :, None]
        found = torch.as_tensor(mask_function(b, h, q, k)).expand(batch, 1, q.shape[2], kv_length)
        rows.append(_core.mask_from_bools(found.numpy()))
    return _core.join_masks(rows)


def fovea_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: Any = 0,
    kv_offset: int = 0,
    mask_function: Optional[Callable] = None,
    attention_mask: Any = None,
    **kwargs: Any,
) -> Any:
    """The mask interface of Transformers: a PlannedMask."""
    from transformers import masking_utils

    if isinstance(attention_mask, PlannedMask):
        return attention_mask
    if mask_function is None:
        mask_function = masking_utils.causal_mask_function
    q_offset = int(q_offset)
    padding = masking_utils.prepare_padding_mask(attention_mask, kv_length, kv_offset)
    if padding is not None:
        padding = padding[:, kv_offset : kv_offset + kv_length].to(torch.bool)
        if bool(padding.all()):
            padding = None
    shape = (batch_size, 1, q_length, kv_length)
    pattern = _pattern_of(mask_function, q_offset - kv_offset, q_length, kv_length)
    if pattern is not None:
        mask = None if padding is None else numbered(_core.mask_from_bools(padding[:, None, None].numpy()))
        return PlannedMask(pattern, mask, shape)
    if padding is not None:
        allowed = mask_function
        mask_function = lambda b, h, q, k: allowed(b, h, q, k) & padding[b, k - kv_offset]
    mask = numbered(_evaluated(mask_function, batch_size, q_length, kv_length, q_offset, kv_offset))
    return PlannedMask("full", mask, shape)


class _Call(NamedTuple):
    pattern: str
    mask: Any


def _call_of(attention_mask: Any, module: torch.nn.Module, is_causal: Optional[bool], q_length: int, kv_length: int) -> _Call:
    if isinstance(attention_mask, PlannedMask):
        return _Call(attention_mask.pattern, attention_mask.mask)
    if attention_mask is not None:
        return _Call("full", attention_mask)
    causal = getattr(module, "is_causal", True) if is_causal is None else is_causal
    if not causal or q_length == 1:
        return _Call("full", None)
    return _Call("causal" if q_length == kv_length else "causal(top_left)", None)


def _wants_weights(kwargs: dict) -> bool:
    if kwargs.get("output_attentions"):
        return True
    try:
        from transformers.utils.output_capturing import _active_collector
    except ImportError:
        return False
    collected = _active_collector.get()
    return bool(collected) and any("attentions" in name for name in collected)


def fovea_attention(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Any,
    scaling: Optional[float] = None,
    dropout: float = 0.0,
    is_causal: Optional[bool] = None,
    position_bias: Optional[Tensor] = None,
    softcap: Optional[float] = None,
    s_aux: Optional[Tensor] = None,
    **kwargs: Any,
) -> Tuple[Tensor, Optional[Tensor]]:
    """The attention interface of Transformers. Returns [B, N, H, D], and the weights where they are asked for."""
    if isinstance(attention_mask, Tensor) and attention_mask.dim() == 4 and attention_mask.shape[-1] > key.shape[2]:
        attention_mask = attention_mask[..., : key.shape[2]]
    pattern, mask = _call_of(attention_mask, module, is_causal, query.shape[2], key.shape[2])
    if scaling is None or scaling > 0:
        score = "scaled_dot" if scaling is None else f"scaled_dot({1 / float(scaling)!r})"
    else:
        score, query = "dot", query * scaling
    if softcap is not None:
        score += f" + soft_cap({float(softcap)!r})"
    weights = _wants_weights(kwargs)
    if isinstance(mask, Tensor) and mask.dtype is not torch.bool and position_bias is not None:
        position_bias, mask = position_bias + mask, None
    found = attention(
        query, key, value, f"{score} / {pattern} / soft", mask=mask, bias=position_bias, sink=s_aux, dropout_p=dropout,
        weights=weights,
    )  # fmt: skip
    output, shown = (found.output, found.weights) if weights else (found, None)
    return output.transpose(1, 2).contiguous(), shown


def register(name: str = "fovea") -> None:
    """Makes attn_implementation=name known to Transformers."""
    from transformers.masking_utils import AttentionMaskInterface
    from transformers.modeling_utils import AttentionInterface

    AttentionInterface.register(name, fovea_attention)
    AttentionMaskInterface.register(name, fovea_mask)
