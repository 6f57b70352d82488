"""Model folders of Fovea: opened, asked, explained. The work is done in C++ (src/tasks); what is here gives it Python's forms."""

from __future__ import annotations

import json
import os
import struct
import zlib
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core

__all__ = ["Classifier", "Encoder", "Explanation", "ImageClassifier", "Model", "Translator", "open"]

PathLike = Union[str, "os.PathLike[str]"]


def _png(pixels: np.ndarray) -> bytes:
    """An array [height, width] or [height, width, 3 or 4] of uint8 as a PNG file."""
    if pixels.dtype != np.uint8 or pixels.ndim not in (2, 3) or (pixels.ndim == 3 and pixels.shape[2] not in (1, 3, 4)):
        raise ValueError(
            f"picture: got an array of {pixels.dtype} and shape {pixels.shape}, wanted uint8 and [height, width] or [height, width, 3]"
        )
    pixels = pixels[:, :, 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels[..., :3] if pixels.ndim == 3 else pixels
    height, width = pixels.shape[:2]
    if not height or not width:
        raise ValueError(f"picture: got shape {pixels.shape}, wanted at least one pixel")
    chunk = lambda name, data: struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
    header = struct.pack(">IIBBBBB", width, height, 8, 2 if pixels.ndim == 3 else 0, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in np.ascontiguousarray(pixels))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows, 1)) + chunk(b"IEND", b"")


def _file_input(item: Any) -> Tuple[Optional[bytes], str]:
    """A file's name, its bytes, a PIL image or an array, as (content or None, name)."""
    if isinstance(item, (str, os.PathLike)):
        return None, os.fspath(item)
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item), "picture"
    if hasattr(item, "convert") and hasattr(item, "mode"):  # PIL
        item = np.asarray(item.convert("L" if item.mode in ("1", "L") else "RGB"))
    return _png(np.asarray(item)), "picture"


def _text_input(item: Any) -> Tuple[str, None]:
    if not isinstance(item, str):
        raise ValueError(f"text: got {type(item).__name__}, wanted str")
    return item, None


class Explanation:
    """What a model looked at. Shows itself in a notebook; save() writes .png, .svg, .pdf, .html, .json or .txt."""

    def __init__(self, model: "Model", given: Any, options: Dict[str, Any]) -> None:
        self._model, self._given, self._options = model, given, options
        self._files: Dict[str, bytes] = {}
        self.title = ""
        self.cut_to = 0  # tokens read of an input that has more; 0: all
        self.to_json()

    def file(self, form: str) -> bytes:
        """The explanation as the bytes of a file with this ending: ".svg"; empty: text for a terminal."""
        if form not in self._files:
            self.title, self._files[form], self.cut_to = self._model._folder.explain(self._given, self._options, form, 100)
        return self._files[form]

    def to_json(self) -> Any:
        """Everything as lists and dicts: what `fovea explain --out x.json` writes."""
        return json.loads(self.file(".json"))

    @property
    def weights(self) -> Any:
        """The weights as NumPy arrays: one, or a dict of place to array where there are several."""
        found = dict(_arrays(self.to_json()))
        return next(iter(found.values())) if len(found) == 1 else found

    def save(self, path: PathLike) -> None:
        """Writes a file; its ending says which kind."""
        path = os.fspath(path)
        _core.write_file(path, self.file(os.path.splitext(path)[1]))

    def __str__(self) -> str:
        return self.file("").decode()

    def __repr__(self) -> str:
        return f"<Explanation {self.title!r}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Dict[str, Any]:
        return {"image/svg+xml": self.file(".svg").decode(), "text/plain": repr(self)}


def _first_number(tree: Any) -> Any:
    return _first_number(tree[0]) if isinstance(tree, list) and tree else tree


def _arrays(tree: Any, place: str = "") -> List[Tuple[str, np.ndarray]]:
    """The lists of weights in an explanation, each with its place: "cross.layers.0.heads" is [heads, rows, columns]."""
    found: List[Tuple[str, np.ndarray]] = []
    if isinstance(tree, dict):
        for key, value in tree.items():
            name = f"{place}.{key}" if place else key
            if not isinstance(_first_number(value), float) or not isinstance(value, list):
                found.extend(_arrays(value, name))
                continue
            array = np.asarray(value, np.float32)
            rows, columns = tree.get("rows"), tree.get("columns")  # of a grid that is written as one list
            if isinstance(rows, int) and isinstance(columns, int) and array.size == rows * columns:
                array = array.reshape(rows, columns)
            found.append((name, array))
    elif isinstance(tree, list):
        for number, item in enumerate(tree):
            named = item.get("kind", item.get("name", number)) if isinstance(item, dict) else number
            parent = "" if isinstance(item, dict) and "kind" in item else place
            found.extend(_arrays(item, f"{parent}.{named}" if parent else str(named)))
    return found


class Model:
    """A model folder of any kind. fovea.open(folder) gives the class that fits."""

    def __init__(self, folder: PathLike, *, purpose: Optional[str] = None, compute: str = "", **embed: Any) -> None:
        self._folder = _core.Folder(os.fspath(folder), purpose, compute, embed)
        self.info: Dict[str, Any] = json.loads(self._folder.info)

    @property
    def labels(self) -> List[str]:
        return self.info.get("labels", [])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.info.get('model', '')} {self.info.get('folder', '')!r}>"

    def _input(self, item: Any) -> Tuple[Any, Optional[str]]:
        return _text_input(item) if self._folder.reads_text else _file_input(item)

    def _is_one(self, inputs: Any) -> bool:
        return isinstance(inputs, (str, bytes, os.PathLike)) or not isinstance(inputs, (list, tuple))

    def answer(self, inputs: Any, *, on_error: str = "stop", **options: Any) -> Any:
        """What the model says of each input, as `fovea ... --json` prints it: a dict each; one dict for one input.

        inputs: texts, or files as paths, bytes, PIL images or arrays, as the model reads. on_error: "stop" raises
        ValueError at the first input that cannot be used, "empty" puts None in its place.
        """
        if on_error not in ("stop", "empty"):
            raise ValueError(f"on_error: got {on_error!r}, wanted stop or empty")
        one = self._is_one(inputs)
        answers = []
        for number, (found, error) in enumerate(
            self._folder.answer([self._input(item) for item in ([inputs] if one else inputs)], options)
        ):
            if error and on_error == "stop":
                raise ValueError(error if one else f"input {number}: {error}")
            answers.append(None if error else json.loads(found))
        return answers[0] if one else answers

    def explain(self, given: Any, **options: Any) -> Explanation:
        """What the model looks at; the options are those of `fovea explain`: target, kind, layer, head, units, beam, ..."""
        return Explanation(self, self._input(given), options)

    def evaluate(self, files: Union[PathLike, Sequence[PathLike]], *, label_column: str = "", text_column: str = "") -> Any:
        """How well a classifier does on labelled data: what `fovea classify --test` measures."""
        paths = [files] if isinstance(files, (str, os.PathLike)) else files
        return json.loads(self._folder.evaluate([os.fspath(path) for path in paths], label_column, text_column))


class Translator(Model):
    """Translates texts. options: beam, n_best, length_penalty, ..., as of `fovea translate`."""

    def __init__(self, folder: PathLike, *, compute: str = "") -> None:
        super().__init__(folder, purpose="translate", compute=compute)

    def translate(self, texts: Any, **options: Any) -> Any:
        """A translation for each text; a list of them for each with n_best."""
        answers = self.answer(texts, **options)
        best = lambda answer: _translations(answer) if options.get("n_best", 1) > 1 else _translations(answer)[0]
        return best(answers) if self._is_one(texts) else [best(answer) for answer in answers]


def _translations(answer: Dict[str, Any]) -> List[str]:
    return [entry["text"] for entry in answer.get("n_best", [answer])]


class Classifier(Model):
    """Classifies texts."""

    def __init__(self, folder: PathLike, *, compute: str = "") -> None:
        super().__init__(folder, purpose="classify", compute=compute)

    def classify(self, inputs: Any, **options: Any) -> Any:
        """{"label": ..., "probabilities": {label: probability}} for each input."""
        return self.answer(inputs, **options)


class ImageClassifier(Classifier):
    """Classifies pictures: paths, bytes of PNG or JPEG files, PIL images, or arrays of uint8."""


class Encoder:
    """An encoder of the BERT family: vectors of texts, and words for masked places."""

    def __init__(self, folder: PathLike, *, compute: str = "", **embed: Any) -> None:
        self._folder, self._compute, self._embed = folder, compute, embed
        self._opened: Dict[str, Model] = {}
        self.info: Dict[str, Any] = json.loads(_core.look_into(os.fspath(folder)))

    def _for(self, purpose: str) -> Model:
        if purpose not in self._opened:
            embed = self._embed if purpose == "embed" else {}
            self._opened[purpose] = Model(self._folder, purpose=purpose, compute=self._compute, **embed)
        return self._opened[purpose]

    def embed(self, texts: Any, **options: Any) -> np.ndarray:
        """[texts, width]; one vector for one text."""
        one = isinstance(texts, str)
        rows = self._for("embed")._folder.vectors([_text_input(text) for text in ([texts] if one else texts)], options)
        return rows[0] if one else rows

    def fill(self, texts: Any, top: int = 5) -> Any:
        """Candidates for the masked places of each text."""
        return self._for("fill").answer(texts, top=top)

    def answer(self, purpose: str, inputs: Any, **options: Any) -> Any:
        """Whatever else the folder can do, by the verb's name."""
        return self._for(purpose).answer(inputs, **options)

    def __repr__(self) -> str:
        return f"<Encoder {self.info.get('model', '')} {os.fspath(self._folder)!r}>"


def open(folder: PathLike, *, compute: str = "") -> Any:  # noqa: A001
    """The folder as the class that fits: Translator, Classifier, ImageClassifier, Encoder, or Model for any other kind."""
    info = json.loads(_core.look_into(os.fspath(folder)))
    abilities = info.get("abilities", [])
    if "translate" in abilities:
        return Translator(folder, compute=compute)
    if "classify" in abilities:
        model = Classifier(folder, compute=compute)
        return model if model._folder.reads_text else ImageClassifier(folder, compute=compute)
    if "embed" in abilities or "fill" in abilities:
        return Encoder(folder, compute=compute)
    return Model(folder, compute=compute)
