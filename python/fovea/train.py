"""fovea.train.translate, classify, image, ...: `fovea train` and `fovea pretrain` from Python, with the flags as keyword arguments.

Each function trains, or resumes, in `out` and leaves a model folder there. Ctrl-C saves and raises KeyboardInterrupt; the
same call goes on from there.
"""

from __future__ import annotations

import json
import math
import os
import shlex
import sys
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Union

from . import _core

__all__ = ["Outcome", "settings", *_core.train_tasks()]

PathLike = Union[str, "os.PathLike[str]"]


class Outcome(NamedTuple):
    """How a training ended: what `fovea train` prints at its end."""

    outcome: str  # finished, already_finished, stopped_early, out_of_time
    step: int
    parameters: int
    best: Optional[float]  # validation's score of the weights kept
    weights_step: int  # the step they come from
    averaged: int  # checkpoints whose average was kept; 0: a single one's weights
    advice: str  # what to do next where the run ended too soon


def settings(task: str) -> List[Dict[str, Any]]:
    """Every setting of a task: name, type, meaning, group, default, choices, and the models that take it."""
    return json.loads(_core.train_settings(task))


def _paths(files: Union[PathLike, Sequence[PathLike], None]) -> List[str]:
    if files is None:
        return []
    return [os.fspath(file) for file in ([files] if isinstance(files, (str, os.PathLike)) else files)]


def _plain(name: str, value: Any) -> Any:
    """A value as JSON can hold it: paths and NumPy's numbers are given, too."""
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    if hasattr(value, "item") and getattr(value, "ndim", 0) == 0:
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"{name}: got {value}, wanted a finite number")
    if value is not None and not isinstance(value, (bool, int, float, str, list, tuple, dict)):
        raise ValueError(f"{name}: got {value!r}, wanted a number, a text, True or False")
    return value


class _Bar:
    """tqdm where it is installed, else a line for every logged step and validation, on standard error."""

    def __init__(self) -> None:
        try:
            from tqdm.auto import tqdm
        except ImportError:
            tqdm = None
        self._tqdm, self._bar = tqdm, None

    def __call__(self, report: Dict[str, Any]) -> None:
        event = report["event"]
        if event == "step" and self._tqdm is not None:
            if self._bar is None:
                self._bar = self._tqdm(total=report["steps"] or None, unit="step", initial=report["step"] - 1)
            self._bar.update(report["step"] - self._bar.n)
            self._bar.set_postfix(loss=f"{report['loss']:.4g}")
        elif event == "step" and report["logged"]:
            self._say(f"step {report['step']}: loss {report['loss']:.4g}")
        elif event == "validation":
            self._say(f"step {report['step']}: validation {report['value']:.4g}{' (best)' if report['is_best'] else ''}")
        elif event == "note":
            self._say(report["text"])

    def _say(self, text: str) -> None:
        if self._tqdm is not None and self._bar is not None:
            self._tqdm.write(text, file=sys.stderr)
        else:
            print(text, file=sys.stderr)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()


def _command(
    task: str, train: List[str], valid: List[str], others: Dict[str, List[str]], out: str, preset: Optional[str], values: Dict[str, Any]
) -> str:
    """The call as the command that does the same, for the model card."""
    words = ["fovea", *([] if task == "pretrain" else ["train"]), task]
    files = {"images" if task == "caption" else "train": train, "valid": valid, **others, "out": [out], "preset": [preset] if preset else []}
    for name, paths in files.items():
        if paths:
            words += ["--" + name, *paths]
    for name, value in values.items():
        words += ["--" + name.replace("_", "-"), str(value).lower() if isinstance(value, bool) else str(value)]
    return shlex.join(words)


def _train(
    task: str,
    train: Any,
    valid: Any,
    others: Dict[str, List[str]],
    out: PathLike,
    preset: Optional[str],
    config: Union[Dict[str, Any], PathLike, None],
    callback: Optional[Callable[[Dict[str, Any]], None]],
    progress: bool,
    threads: int,
    values: Dict[str, Any],
) -> Outcome:
    config_name = "config"
    if config is not None and not isinstance(config, dict):
        config_name = os.fspath(config)
        with open(config_name, encoding="utf-8") as file:
            config = json.load(file)
    bar = _Bar() if progress else None

    def tell(report: Dict[str, Any]) -> None:
        if bar is not None:
            bar(report)
        if callback is not None:
            callback(report)

    files, checks, folder = _paths(train), _paths(valid), os.fspath(out)
    try:
        return Outcome(
            **_core.train(
                task, files, checks, others, folder, preset or "", json.dumps(config or {}), config_name, json.dumps(values),
                _command(task, files, checks, others, folder, preset, values), tell, threads,
            )  # fmt: skip
        )
    finally:
        if bar is not None:
            bar.close()


def _make(task: str, other_files: List[str]) -> Callable[..., Outcome]:
    def run(
        train: Any,
        out: PathLike,
        valid: Any = None,
        *,
        preset: Optional[str] = None,
        config: Union[Dict[str, Any], PathLike, None] = None,
        callback: Optional[Callable[[Dict[str, Any]], None]] = None,
        progress: bool = False,
        threads: int = 0,
        **settings: Any,
    ) -> Outcome:
        # `from` is a word of Python's own: it is written from_.
        values = {name[:-1] if name.endswith("_") else name: value for name, value in settings.items()}
        others = {name: _paths(values.pop(name)) for name in other_files if name in values}
        values = {name: _plain(name, value) for name, value in values.items()}
        return _train(task, train, valid, others, out, preset, config, callback, progress, threads, values)

    lines = [f"    {setting['name']}: {setting['meaning']}" for setting in settings(task)]
    run.__name__ = run.__qualname__ = task
    run.__doc__ = (
        f"`fovea {'pretrain' if task == 'pretrain' else 'train ' + task}`. "
        + ("train: the pictures. captions, split, encoder, features" if task == "caption" else "train, valid")
        + ": files, as for the command. callback: called with a dict after every step "
        "(event: step, validation, note, resume or save). progress: show a bar.\n\n" + "\n".join(lines)
    )
    return run


for _task, _other_files in _core.train_tasks().items():
    globals()[_task] = _make(_task, _other_files)
