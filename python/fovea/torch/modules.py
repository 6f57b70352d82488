"""Drop-ins for modules of torch.nn: the same parameters and state dict, with a spec for the attention."""

from __future__ import annotations

from typing import Any, Callable, Optional, Tuple, Union

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .. import _core
from .ops import attention

__all__ = ["MultiheadAttention", "TransformerEncoderLayer"]


def _additive(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """torch.nn's masks as numbers that are added to scores: True means that a query may not attend."""
    if mask.dtype is not torch.bool:
        return mask.to(dtype)
    return torch.zeros(mask.shape, dtype=dtype).masked_fill(mask, float("-inf"))


class MultiheadAttention(nn.MultiheadAttention):
    """torch.nn.MultiheadAttention, computed by Fovea; loads its state dict.

    spec: the attention, as in fovea.torch.attention: "scaled_dot / window(256,256) / soft". Masks go on top of it. The
    inputs of a packed batch (documents) are not supported here; use fovea.torch.attention.
    """

    def __init__(self, *args: Any, spec: str = "scaled_dot / full / soft", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        _core.canonical_spec(spec)  # an error now, not in the first step
        self.spec = spec

    def extra_repr(self) -> str:
        return f"spec={self.spec!r}"

    def _projected(self, query: Tensor, key: Tensor, value: Tensor) -> Tuple[Tensor, Tensor, Tensor]:
        width = self.embed_dim
        if self._qkv_same_embed_dim:
            weights = self.in_proj_weight.split(width)
        else:
            weights = (self.q_proj_weight, self.k_proj_weight, self.v_proj_weight)
        biases = (None, None, None) if self.in_proj_bias is None else self.in_proj_bias.split(width)
        if query is key and key is value and self._qkv_same_embed_dim:
            return F.linear(query, self.in_proj_weight, self.in_proj_bias).chunk(3, -1)
        q, k, v = (F.linear(x, w, b) for x, w, b in zip((query, key, value), weights, biases))
        return q, k, v

    def forward(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        key_padding_mask: Optional[Tensor] = None,
        need_weights: bool = True,
        attn_mask: Optional[Tensor] = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> Tuple[Tensor, Optional[Tensor]]:
        if query.dim() not in (2, 3) or query.dim() != key.dim() or key.dim() != value.dim():
            raise ValueError(
                f"MultiheadAttention: got tensors of {query.dim()}, {key.dim()} and {value.dim()} dimensions, wanted 3 (or 2 without a batch)"
            )
        if is_causal and attn_mask is None:
            raise ValueError("MultiheadAttention: is_causal=True needs an attn_mask, as in torch.nn; or use spec='scaled_dot / causal'")
        batched = query.dim() == 3
        same = query is key and key is value
        if not batched:
            query = query.unsqueeze(0)
            key, value = (query, query) if same else (key.unsqueeze(0), value.unsqueeze(0))
            key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
        elif not self.batch_first:
            query = query.transpose(0, 1)
            key, value = (query, query) if same else (key.transpose(0, 1), value.transpose(0, 1))
        q, k, v = self._projected(query, key, value)
        batch, queries, _ = q.shape
        mask = self._mask(attn_mask, key_padding_mask, batch, q.dtype)
        if self.bias_k is not None:
            k = torch.cat([k, self.bias_k.expand(batch, 1, -1)], 1)
            v = torch.cat([v, self.bias_v.expand(batch, 1, -1)], 1)
        if self.add_zero_attn:
            k, v = (F.pad(x, (0, 0, 0, 1)) for x in (k, v))
        added = k.shape[1] - key.shape[1]
        if mask is not None and added:
            mask = F.pad(mask, (0, added), value=1 if mask.dtype is torch.bool else 0)  # every query attends to these
        heads = lambda x: x.unflatten(-1, (self.num_heads, self.head_dim)).transpose(1, 2)
        found = attention(
            heads(q), heads(k), heads(v), self.spec, mask=mask, dropout_p=self.dropout if self.training else 0.0,
            weights=need_weights,
        )  # fmt: skip
        output, weights = (found.output, found.weights) if need_weights else (found, None)
        output = self.out_proj(output.transpose(1, 2).flatten(2))
        if weights is not None and average_attn_weights:
            weights = weights.mean(1)
        if not batched:
            return output.squeeze(0), None if weights is None else weights.squeeze(0)
        return (output if self.batch_first else output.transpose(0, 1)), weights

    def _mask(
        self, attn_mask: Optional[Tensor], key_padding_mask: Optional[Tensor], batch: int, dtype: torch.dtype
    ) -> Optional[Tensor]:
        """Both masks as one: bool (True: may attend) where both are, else numbers to add."""
        given = []
        if attn_mask is not None:
            given.append(attn_mask.unflatten(0, (batch, self.num_heads)) if attn_mask.dim() == 3 else attn_mask[None, None])
        if key_padding_mask is not None:
            given.append(key_padding_mask[:, None, None])
        if not given:
            return None
        if all(mask.dtype is torch.bool for mask in given):
            forbidden = given[0] if len(given) == 1 else given[0] | given[1]
            return forbidden.logical_not()
        added = [_additive(mask, dtype) for mask in given]
        return added[0] if len(added) == 1 else added[0] + added[1]


class TransformerEncoderLayer(nn.TransformerEncoderLayer):
    """torch.nn.TransformerEncoderLayer with Fovea's attention; loads its state dict. spec: as in MultiheadAttention."""

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: Union[str, Callable[[Tensor], Tensor]] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
        *,
        spec: str = "scaled_dot / full / soft",
    ) -> None:
        super().__init__(
            d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias, device, dtype
        )
        self.self_attn = MultiheadAttention(
            d_model, nhead, dropout=dropout, bias=bias, batch_first=batch_first, device=device, dtype=dtype, spec=spec
        )
        # Keeps torch.nn.TransformerEncoder from its fused path, which reads weights and leaves this forward() out.
        self.activation_relu_or_gelu = 0

    def forward(
        self,
        src: Tensor,
        src_mask: Optional[Tensor] = None,
        src_key_padding_mask: Optional[Tensor] = None,
        is_causal: bool = False,
    ) -> Tensor:
        # As torch.nn's, without its fused path, which would compute the attention by itself.
        x = src
        if self.norm_first:
            x = x + self._sa_block(self.norm1(x), src_mask, src_key_padding_mask, is_causal=is_causal)
            return x + self._ff_block(self.norm2(x))
        x = self.norm1(x + self._sa_block(x, src_mask, src_key_padding_mask, is_causal=is_causal))
        return self.norm2(x + self._ff_block(x))
