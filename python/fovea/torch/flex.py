"""PyTorch's functions with their own arguments: flex_attention() with its BlockMask, and scaled_dot_product_attention()."""

from __future__ import annotations

from typing import Any, Callable, Dict, NamedTuple, Optional, Tuple, Union

import numpy as np
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from .. import _core
from .ops import NumberedMask, attention, numbered

__all__ = ["Score", "flex_attention", "scaled_dot_product_attention", "score"]


class Score(NamedTuple):
    """A score_mod as terms of a spec, with the tensors that they read; made by score()."""

    terms: str
    tensors: Dict[str, Tensor]


def score(terms: str, **tensors: Tensor) -> Score:
    """What happens to a score, for flex_attention's score_mod: "alibi", "soft_cap(30)", "relative(32,128)", joined by +.

    tensors: slopes=[H] of alibi, relative=[buckets, H], bias= (broadcast to [B, H, Nq, Nk]), sink=[H]; gradients reach
    them. bias, slopes and sink need not be named in `terms`.
    """
    known = ("slopes", "relative", "bias", "sink")
    for name in tensors:
        if name not in known:
            raise ValueError(f"score: unknown tensor '{name}', known: {', '.join(known)}")
    _core.canonical_spec(f"dot + {terms}" if terms else "dot")
    return Score(terms, tensors)


def _on_pairs(function: Callable, *indices: Tensor) -> Tensor:
    """function(..., b, h, q, k) on index tensors that broadcast against each other, as vmap would call it one by one."""
    result = function(*indices)
    shape = torch.broadcast_shapes(*(x.shape for x in indices))
    return torch.as_tensor(result).expand(shape)


# Partial blocks whose mask_mod is evaluated at once.
_BLOCKS_AT_ONCE = 64


def _partial_bits(block_mask: Any, counts: np.ndarray, indices: np.ndarray, sizes: tuple) -> np.ndarray:
    """The partial blocks' own bits, [blocks, query_block, key_block], in the order of the lists."""
    query_block, key_block = block_mask.BLOCK_SIZE
    _, _, queries, keys = sizes
    listed = np.arange(indices.shape[-1]) < counts[..., None]
    b, h, row, _ = np.nonzero(listed)
    column = indices[listed]
    bits = np.empty((len(column), query_block, key_block), np.uint8)
    for begin in range(0, len(column), _BLOCKS_AT_ONCE):
        part = slice(begin, begin + _BLOCKS_AT_ONCE)
        at = lambda places: torch.from_numpy(np.ascontiguousarray(places[part], np.int64))[:, None, None]
        # Beyond the last token the answer is not used; a mask_mod that looks up a table must not be asked for it.
        q = (at(row) * query_block + torch.arange(query_block)[:, None]).clamp(max=queries - 1)
        k = (at(column) * key_block + torch.arange(key_block)).clamp(max=keys - 1)
        bits[part] = _on_pairs(block_mask.mask_mod, at(b), at(h), q, k).numpy()
    return bits


def _int32(tensor: Optional[Tensor], like: np.ndarray) -> np.ndarray:
    if tensor is None:
        return np.zeros(like, np.int32)
    return np.ascontiguousarray(tensor.detach().cpu().numpy(), np.int32)


# Beside the BlockMasks, not inside them: they can still be copied and pickled.
_kept_masks = WeakIdKeyDictionary()


@torch.no_grad()
def _mask_of(block_mask: Any, queries: int, keys: int) -> NumberedMask:
    """The plan's mask of a BlockMask, made once and kept as long as the BlockMask lives."""
    if tuple(block_mask.seq_lengths) != (queries, keys):
        raise ValueError(
            f"flex_attention: got a block mask for {tuple(block_mask.seq_lengths)} queries and keys and "
            f"tensors of {(queries, keys)}, wanted the same"
        )
    kept = _kept_masks.get(block_mask)
    if kept is not None:
        return kept
    if block_mask.kv_indices.device.type != "cpu":
        raise ValueError(f"flex_attention: the block mask is on {block_mask.kv_indices.device}; make it with device='cpu'")
    counts = _int32(block_mask.kv_num_blocks, None)
    indices = _int32(block_mask.kv_indices, None)
    # Lists are as long as the most that a tensor can say: keep what counts.
    indices = np.ascontiguousarray(indices[..., : max(1, int(counts.max(initial=0)))])
    full_counts = _int32(block_mask.full_kv_num_blocks, counts.shape)
    full_indices = _int32(block_mask.full_kv_indices, (*counts.shape, 1))
    full_indices = np.ascontiguousarray(full_indices[..., : max(1, int(full_counts.max(initial=0)))])
    sizes = (counts.shape[0], counts.shape[1], queries, keys)
    bits = _partial_bits(block_mask, counts, indices, sizes)
    query_block, key_block = block_mask.BLOCK_SIZE
    made = numbered(
        _core.mask_from_blocks(sizes, query_block, key_block, full_counts, full_indices, counts, indices, bits.reshape(-1))
    )
    _kept_masks[block_mask] = made
    return made


# What a soft cap and ALiBi are written with. No op here decides by comparing or rounding, and none selects, so a function made
# of them does not change from one place to the next: what holds at random places holds at all of them.
_SMOOTH_OPS = frozenset(
    "abs add alias clone detach div exp exp2 expand mul neg pow reciprocal rsub scalar_tensor select squeeze sub t tanh "
    "unsqueeze view _to_copy lift_fresh lift_fresh_copy lift ones_like full_like full".split()
)


class _Observer(TorchDispatchMode):
    """Tells whether all that runs under it is made of smooth ops, and of tables that are indexed by the head alone."""

    def __init__(self, head: Tensor, *others: Tensor) -> None:
        super().__init__()
        self.is_smooth = True
        self._tensors = [head, *others]  # kept, so that their ids stay theirs
        self._of_head, self._of_others = {id(head)}, {id(x) for x in others}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        found = func(*args, **(kwargs or {}))
        leaves = [x for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)]
        self._tensors += [found, *leaves]
        if func.overloadpacket is torch.ops.aten.index:
            table, indices = args
            indices = [x for x in indices if x is not None]
            self.is_smooth &= id(table) not in self._of_head | self._of_others and all(id(x) in self._of_head for x in indices)
        elif func.overloadpacket.__name__ not in _SMOOTH_OPS:
            self.is_smooth = False
        if any(id(x) in self._of_others for x in leaves):
            self._of_others.add(id(found))
        elif any(id(x) in self._of_head for x in leaves):
            self._of_head.add(id(found))
        return found


_PROBES = 512


def _recognised(score_mod: Callable, block_mask: Any, batch: int, heads: int, queries: int, keys: int) -> Optional[Score]:
    """A soft cap or ALiBi, told from its ops and its values at random places (that the mask allows); None: something else."""
    generator = torch.Generator().manual_seed(1)
    draw = lambda count: torch.randint(count, (_PROBES,), generator=generator)
    places = draw(batch), draw(heads), draw(queries), draw(keys)
    if block_mask is not None:
        allowed = _on_pairs(block_mask.mask_mod, *places)
        if not bool(allowed.any()):
            return None
        places = tuple(x[allowed] for x in places)
    b, h, q, k = places
    x = torch.randn(len(b), generator=generator, dtype=torch.float32) * 4
    with _Observer(h, b, q, k, x) as observer:
        y = _on_pairs(score_mod, x, b, h, q, k).float()
    if not observer.is_smooth:
        return None
    if y.requires_grad:
        return None  # a tensor inside is trained: it must be given by name
    if torch.equal(x, y):
        return Score("", {})
    cap = float(_on_pairs(score_mod, torch.full((1,), 1e8, dtype=torch.float32), b[:1], h[:1], q[:1], k[:1])[0])
    if cap > 0 and torch.allclose(y, cap * torch.tanh(x / cap), rtol=1e-4, atol=1e-4):
        return Score(f"soft_cap({cap!r})", {})
    if queries != keys or queries < 2:
        return None
    every = torch.arange(heads)
    one, zero = torch.ones_like(every), torch.zeros_like(every)
    slopes = -_on_pairs(score_mod, torch.zeros(heads, dtype=torch.float32), zero, every, one, zero).float()
    if torch.allclose(y - x, -slopes[h] * (q - k).abs(), rtol=1e-4, atol=1e-4):
        return Score("alibi", {"slopes": slopes})
    return None


def _score_of(score_mod: Any, block_mask: Any, query: Tensor, key: Tensor) -> Score:
    if score_mod is None:
        return Score("", {})
    if isinstance(score_mod, Score):
        return score_mod
    if isinstance(score_mod, str):
        return score(score_mod)
    found = None
    if callable(score_mod):
        found = _recognised(score_mod, block_mask, *query.shape[:3], key.shape[2])
    if found is None:
        name = getattr(score_mod, "__name__", type(score_mod).__name__)
        raise ValueError(
            f"flex_attention: score_mod '{name}' is none that Fovea knows (a soft cap, or ALiBi with as many queries as "
            'keys); give it as fovea.torch.score("soft_cap(30)"), score("alibi", slopes=...), '
            'score("relative(32,128)", relative=table) or score("", bias=...)'
        )
    return found


def scaled_score(query: Tensor, scale: Optional[float]) -> Tuple[str, Tensor]:
    """The score of a spec, and the query, for a scale as PyTorch's functions take it."""
    if scale is None:
        return "scaled_dot", query
    return (f"scaled_dot({1 / scale!r})", query) if scale > 0 else ("dot", query * scale)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Optional[Tensor] = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
) -> Tensor:
    """torch.nn.functional.scaled_dot_product_attention with its arguments, computed by Fovea; two to four dimensions.

    As there, is_causal counts positions from the first query and the first key.
    """
    name, rank = "scaled_dot_product_attention", query.dim()
    if not 2 <= rank <= 4 or key.dim() != rank or value.dim() != rank:
        shapes = [list(x.shape) for x in (query, key, value)]
        raise ValueError(f"{name}: got {shapes[0]}, {shapes[1]} and {shapes[2]}, wanted the same 2 to 4 dimensions")
    if attn_mask is not None and is_causal:
        raise ValueError(f"{name}: got attn_mask and is_causal=True, wanted one of them")
    if rank == 4 and not enable_gqa and query.shape[1] != key.shape[1]:
        raise ValueError(f"{name}: got {query.shape[1]} query heads and {key.shape[1]} key heads, wanted the same or enable_gqa=True")
    base, query = scaled_score(query, scale)
    if rank == 2:
        query, key, value = query[None], key[None], value[None]
    if rank < 4:
        query, key, value = query.unsqueeze(1), key.unsqueeze(1), value.unsqueeze(1)
        if attn_mask is not None and attn_mask.dim() == 3:
            attn_mask = attn_mask.unsqueeze(1)
    spec = f"{base} / causal(top_left)" if is_causal else base
    output = attention(query, key, value, spec, mask=attn_mask, dropout_p=dropout_p)
    output = output if rank == 4 else output.squeeze(1)
    return output[0] if rank == 2 else output


def flex_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    score_mod: Union[Callable, Score, str, None] = None,
    block_mask: Any = None,
    scale: Optional[float] = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,
    *,
    return_aux: Any = None,
) -> Any:
    """torch.nn.attention.flex_attention.flex_attention on the CPU, with gradients of query, key and value.

    block_mask: PyTorch's BlockMask. Its mask_mod is evaluated once for each partial block, and what was made of it is kept
    with the BlockMask: make a new one when a tensor that it reads has changed. score_mod: a soft cap or ALiBi as a
    function, or any terms as score(...); others are refused. kernel_options are those of other kernels and have no effect
    here. return_aux: an AuxRequest for lse.
    """
    if not enable_gqa and query.dim() == 4 and key.dim() == 4 and query.shape[1] != key.shape[1]:
        raise ValueError(
            f"flex_attention: got {query.shape[1]} query heads and {key.shape[1]} key heads, wanted the same or enable_gqa=True"
        )
    if return_aux is not None and getattr(return_aux, "max_scores", False):
        raise ValueError("flex_attention: max_scores is not computed; ask for lse")
    if query.dim() != 4 or key.dim() != 4:
        raise ValueError(f"flex_attention: got {list(query.shape)} and {list(key.shape)}, wanted [batch, heads, tokens, features]")
    terms, tensors = _score_of(score_mod, block_mask, query, key)
    mask = None if block_mask is None else _mask_of(block_mask, query.shape[2], key.shape[2])
    base, query = scaled_score(query, scale)
    spec = f"{base} + {terms}" if terms else base
    wants_lse = return_lse or (return_aux is not None and return_aux.lse)
    found = attention(query, key, value, spec, mask=mask, return_lse=wants_lse, **tensors)
    if return_aux is not None:
        from torch.nn.attention.flex_attention import AuxOutput

        output, lse = (found.output, found.lse) if wants_lse else (found, None)
        return output, AuxOutput(lse=lse)
    return (found.output, found.lse) if return_lse else found
