"""attention() for NumPy arrays and everything that speaks DLPack."""

from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core
from ._core import Mask

__all__ = ["AttentionOutput", "Mask", "attention", "as_mask"]


class AttentionOutput(NamedTuple):
    """What attention() returns when more than the output is asked for."""

    output: np.ndarray  # [B, H, Nq, Dv]
    lse: Optional[np.ndarray]  # [B, H, Nq]
    weights: Optional[np.ndarray]  # [B, heads, rows, Nk]


def as_mask(mask: Any) -> Optional[Mask]:
    """A Mask from a bool array that broadcasts to [batch, heads, queries, keys]; None and a Mask are passed on."""
    return mask if mask is None or isinstance(mask, Mask) else _core.mask_from_bools(mask)


def _chosen(which: Any) -> Optional[Sequence[int]]:
    if which is None or isinstance(which, slice) and which == slice(None):
        return None
    return [int(place) for place in which]


def chosen_weights(weights: Any) -> Tuple[bool, Optional[Sequence[int]], Optional[Sequence[int]]]:
    """`weights=` as people write it: False, True for all, or (heads, rows), each a list or None for all."""
    if weights is None or weights is False:
        return False, None, None
    if weights is True:
        return True, None, None
    try:
        heads, rows = weights
    except (TypeError, ValueError):
        raise ValueError(
            f"attention: got weights={weights!r}, wanted True or a pair (heads, rows), each a list or None for all"
        ) from None
    return True, _chosen(heads), _chosen(rows)


def attention(
    q: Any,
    k: Any,
    v: Any,
    spec: str = "scaled_dot / full / soft",
    *,
    bias: Any = None,
    slopes: Any = None,
    relative: Any = None,
    position: Any = None,
    sink: Any = None,
    W: Any = None,
    U: Any = None,
    b: Any = None,
    score_vector: Any = None,
    mask: Any = None,
    lengths: Optional[Sequence[int]] = None,
    query_lengths: Optional[Sequence[int]] = None,
    documents: Optional[Sequence[int]] = None,
    dropout: float = 0.0,
    seed: int = 0,
    training: bool = False,
    return_lse: bool = False,
    weights: Union[bool, Tuple[Any, Any]] = False,
    threads: int = 0,
) -> Union[np.ndarray, AttentionOutput]:
    """Attention of any kind: score, pattern and selection as `spec` says, "scaled_dot / causal & window(256,0) / soft".

    q: [B, H, Nq, D], k: [B, Hk, Nk, D], v: [B, Hk, Nk, Dv], float32 on the CPU; Hk divides H. Arrays are read in
    place, whatever their strides, as long as features are neighbours in memory.

    bias (broadcast to [B, H, Nq, Nk]), slopes ([H], ALiBi), sink ([H]) add their term to the score, named in the spec
    or not; relative, position, W, U, b and score_vector are the parameters of terms and scores that the spec names.
    mask: bool, True where a query may attend, broadcast to [B, H, Nq, Nk]. lengths, query_lengths: tokens of each
    sequence of the batch. documents: tokens of each document of a packed batch; the pattern begins anew in each.

    Returns the output [B, H, Nq, Dv] as a NumPy array; with return_lse or weights, (output, lse, weights). weights:
    True, or (heads, rows) with None for all: [B, heads, rows, Nk]. dropout and draws act with training=True only.
    """
    wants_weights, heads, rows = chosen_weights(weights)
    parameters = [bias, slopes, relative, position, sink, W, U, b, score_vector]
    output, lse, shown = _core.attention(
        q, k, v, spec, parameters, as_mask(mask), lengths, query_lengths, documents, dropout, seed, training,
        return_lse, wants_weights, heads, rows, threads,
    )  # fmt: skip
    return AttentionOutput(output, lse, shown) if return_lse or wants_weights else output
