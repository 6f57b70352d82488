"""attention() for NumPy arrays and everything that speaks DLPack."""

from __future__ import annotations

import operator
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
    if mask is None or isinstance(mask, Mask):
        return mask
    try:
        return _core.mask_from_bools(mask)
    except TypeError:
        raise TypeError(f"mask: got {type(mask).__name__}, wanted a bool array of NumPy or one that speaks DLPack") from None


def whole_numbers(name: str, counts: Any) -> Optional[Tuple[int, ...]]:
    """Lengths as people give them, in a list, an array or a tensor."""
    if counts is None:
        return None
    try:
        found = tuple([operator.index(count) for count in (counts.tolist() if hasattr(counts, "tolist") else counts)])
        if all([-(2**63) <= count < 2**63 for count in found]):
            return found
    except TypeError:
        pass
    raise ValueError(f"attention: got {name}={counts!r}, wanted a list of whole numbers")


def _readable(name: str, array: Any) -> Any:
    """The array, as far as its memory holds its numbers as they are."""
    if getattr(array, "requires_grad", False):
        raise ValueError(f"attention: {name} requires a gradient; use fovea.torch.attention, or give it as {name}.detach()")
    if isinstance(array, np.ma.MaskedArray) and np.ma.is_masked(array):
        raise ValueError(f"attention: {name} is a masked array; give its data, and what to leave out as mask=")
    is_negative = getattr(array, "is_neg", None)  # of PyTorch: stored with the other sign
    return array.resolve_neg() if callable(is_negative) and is_negative() else array


def _unreadable(name: str, array: Any) -> Optional[Exception]:
    """Why an array cannot be read; None: it can, as far as Python can tell."""
    if isinstance(array, np.ndarray):
        if array.dtype != np.float32 or not array.dtype.isnative:
            return ValueError(f"{name}: got dtype {array.dtype}, wanted float32; use .astype(numpy.float32)")
        if any(stride % array.itemsize for stride in array.strides):
            return ValueError(f"{name}: got strides of {array.strides} bytes, wanted multiples of {array.itemsize}; use .copy()")
        return None
    if not hasattr(array, "__dlpack__"):
        return TypeError(f"{name}: got {type(array).__name__}, wanted an array of NumPy or one that speaks DLPack")
    try:
        np.from_dlpack(array)
    except Exception as error:
        return ValueError(f"{name}: got a {type(array).__name__} that cannot be read on the CPU: {error}")
    return None


def _chosen(which: Any) -> Optional[Sequence[int]]:
    if which is None or isinstance(which, slice) and which == slice(None):
        return None
    return [operator.index(place) for place in which]


def chosen_weights(weights: Any) -> Tuple[bool, Optional[Sequence[int]], Optional[Sequence[int]]]:
    """`weights=` as people write it: False, True for all, or (heads, rows), each a list or None for all."""
    if weights is None or weights is False:
        return False, None, None
    if weights is True:
        return True, None, None
    try:
        heads, rows = (_chosen(which) for which in weights)
    except (TypeError, ValueError):
        raise ValueError(
            f"attention: got weights={weights!r}, wanted True or a pair (heads, rows), each a list of places or None for all"
        ) from None
    for place in (*(heads or ()), *(rows or ())):
        if not 0 <= place < 2**31:
            raise ValueError(f"attention: got {place} as a place in weights, wanted one from 0 up")
    return True, heads, rows


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
    lengths, query_lengths, documents = (
        whole_numbers(name, counts)
        for name, counts in (("lengths", lengths), ("query_lengths", query_lengths), ("documents", documents))
    )
    if not 0 <= seed < 2**64:
        raise ValueError(f"attention: got seed={seed}, wanted 0 or more and less than 2^64")
    given = dict(
        q=q, k=k, v=v, bias=bias, slopes=slopes, relative=relative, position=position, sink=sink, W=W, U=U, b=b,
        score_vector=score_vector,
    )  # fmt: skip
    q, k, v, *parameters = (_readable(name, array) for name, array in given.items())
    plan = as_mask(mask)
    try:
        output, lse, shown = _core.attention(
            q, k, v, spec, parameters, plan, lengths, query_lengths, documents, dropout, seed, training,
            return_lse, wants_weights, heads, rows, threads,
        )  # fmt: skip
    except TypeError:
        for place, (name, array) in enumerate(given.items()):
            error = _unreadable(name, array) if array is not None or place < 3 else None
            if error is not None:
                raise error from None
        raise
    return AttentionOutput(output, lse, shown) if return_lse or wants_weights else output
