"""Fovea's attention for PyTorch on CPUs, with gradients."""

from .flex import flex_attention, score
from .modules import MultiheadAttention, TransformerEncoderLayer
from .ops import attention

__all__ = ["MultiheadAttention", "TransformerEncoderLayer", "attention", "flex_attention", "score"]
