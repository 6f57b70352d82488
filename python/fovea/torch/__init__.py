"""Fovea's attention for PyTorch on CPUs, with gradients."""

from .flex import Score, flex_attention, scaled_dot_product_attention, score
from .modules import MultiheadAttention, TransformerEncoderLayer
from .ops import AttentionOutput, attention

__all__ = [
    "AttentionOutput",
    "MultiheadAttention",
    "Score",
    "TransformerEncoderLayer",
    "attention",
    "flex_attention",
    "scaled_dot_product_attention",
    "score",
]
