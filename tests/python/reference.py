"""Attention by its definition, in float64: what every result is compared with."""

import numpy as np


def visible(pattern, queries, keys):
    """[Nq, Nk]: which keys a pattern lets a query attend to, bottom-right aligned."""
    position = np.arange(queries)[:, None] + keys - queries
    key = np.arange(keys)[None, :]
    return {
        "full": np.ones((queries, keys), bool),
        "causal": key <= position,
        "window(3,2)": (key >= position - 3) & (key <= position + 2),
        "causal & window(4,0)": (key <= position) & (key >= position - 4),
        "strided(3)": (position - key) % 3 == 0,
        "window(2,0) | global(0)": ((key <= position) & (key >= position - 2)) | (key == 0) | (position == 0),
    }[pattern]


def attention(q, k, v, mask=None, bias=0.0, scale=None):
    """q: [B, H, Nq, D], k and v: [B, Hk, Nk, ...]. Returns output, weights and lse; rows that see nothing give 0."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    group = q.shape[1] // k.shape[1]
    k, v = np.repeat(k, group, 1), np.repeat(v, group, 1)
    scores = np.einsum("bhid,bhjd->bhij", q, k) * (scale if scale is not None else 1 / np.sqrt(q.shape[-1])) + bias
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    top = np.max(scores, -1, keepdims=True, initial=-np.inf)
    weights = np.exp(scores - np.where(np.isfinite(top), top, 0))
    total = weights.sum(-1, keepdims=True)
    with np.errstate(divide="ignore"):
        lse = (np.log(total) + np.where(np.isfinite(top), top, 0))[..., 0]
    weights = np.divide(weights, total, out=np.zeros_like(weights), where=total > 0)
    return weights @ v, weights, lse
