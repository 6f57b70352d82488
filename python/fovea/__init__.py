"""Attention on ordinary machines.

fovea.attention         any attention for NumPy and DLPack arrays
fovea.torch             the same for PyTorch, with gradients
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from ._core import __version__, num_threads, set_num_threads
from .arrays import AttentionOutput, Mask, attention

if TYPE_CHECKING:
    from . import torch

__all__ = [
    "AttentionOutput",
    "Mask",
    "attention",
    "num_threads",
    "set_num_threads",
]

_SUBMODULES = ("torch",)


def __getattr__(name: str):
    # Imported when first used: `import fovea` must not import PyTorch.
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'fovea' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES, "__version__"])
