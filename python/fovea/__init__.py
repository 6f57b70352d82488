"""Attention on ordinary machines.

fovea.attention         any attention for NumPy and DLPack arrays
fovea.torch             the same for PyTorch, with gradients; flex_attention, MultiheadAttention and more
fovea.transformers      attn_implementation="fovea" for Hugging Face models
fovea.open              model folders of Fovea: translate, classify, caption, embed, explain, ...
fovea.train             training of such folders

docs/python.md explains each.
"""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING

from ._core import __version__, num_threads, set_num_threads

# Free-threaded Python turns the GIL on for a module such as _core, unless it was told not to.
if not getattr(sys, "_is_gil_enabled", lambda: True)():
    raise ImportError("fovea: this Python runs without the GIL, which Fovea needs; unset PYTHON_GIL and -X gil=0")

from . import tasks
from .arrays import AttentionOutput, Mask, attention
from .tasks import *  # noqa: F403 - the classes of models, listed there

if TYPE_CHECKING:
    from . import torch, train, transformers

__all__ = [
    "AttentionOutput",
    "Mask",
    "attention",
    "num_threads",
    "set_num_threads",
]
__all__ += tasks.__all__

_SUBMODULES = ("torch", "train", "transformers")


def __getattr__(name: str):
    # Imported when first used: `import fovea` must not import PyTorch.
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module 'fovea' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted([*__all__, *_SUBMODULES, "__version__"])
