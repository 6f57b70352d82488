"""Fovea's attention for PyTorch on CPUs, with gradients."""

from .ops import AttentionOutput, attention

__all__ = ["AttentionOutput", "attention"]
