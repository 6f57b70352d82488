"""Model folders of Fovea: opened, asked, explained. The work is done in C++ (src/tasks); what is here gives it Python's forms."""

from __future__ import annotations

import builtins
import csv
import io
import json
import os
import struct
import zlib
from typing import Any, Dict, List, Optional, Sequence, Tuple, Union

import numpy as np

from . import _core

__all__ = [
    "Captioner",
    "Classifier",
    "ClipClassifier",
    "Encoder",
    "Explanation",
    "ImageClassifier",
    "Model",
    "Partitioner",
    "SeriesModel",
    "Translator",
    "open",
]

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


def _is_path(item: Any) -> bool:
    return isinstance(item, (str, os.PathLike))


def _read(path: str) -> bytes:
    with builtins.open(path, "rb") as file:
        return file.read()


def _clip_input(item: Any) -> Tuple[Any, str]:
    """A folder's name, a list of pictures, an array [frames, ...] or one picture."""
    frames = list(item) if isinstance(item, (list, tuple)) or isinstance(item, np.ndarray) and item.ndim == 4 else None
    if frames is None:
        return _file_input(item)
    pictures = [_file_input(frame) for frame in frames]
    return [_read(name) if content is None else content for content, name in pictures], "clip"


def _series_input(item: Any) -> Tuple[Any, str]:
    """A file's name, its bytes, a table (a dict of columns, a DataFrame), or a case as an array [features, steps]."""
    if _is_path(item):
        return None, os.fspath(item)
    if isinstance(item, (bytes, bytearray, memoryview)):
        return bytes(item), "series"
    if hasattr(item, "to_csv"):
        return item.to_csv(index=False), "table"
    if isinstance(item, dict):
        lengths = {len(column) for column in item.values()}
        if len(lengths) > 1:
            raise ValueError(f"table: got columns of {sorted(lengths)} values, wanted as many in each")
        text = io.StringIO()
        csv.writer(text, lineterminator="\n").writerows([item.keys(), *zip(*item.values())])
        return text.getvalue(), "table"
    case = np.asarray(item, np.float64)
    if case.ndim not in (1, 2):
        raise ValueError(f"case: got an array of {case.ndim} dimensions, wanted [features, steps]")
    return ":".join(",".join("?" if np.isnan(x) else repr(float(x)) for x in row) for row in np.atleast_2d(case)), "case"


def _text_input(item: Any) -> Tuple[str, None]:
    if not isinstance(item, str):
        raise ValueError(f"text: got {type(item).__name__}, wanted str")
    return item, None


class Explanation:
    """What a model looked at. Shows itself in a notebook; save() writes .png, .svg, .pdf, .html, .json or .txt.

    Options that choose what is shown (kind, layer, head, ...) hold for the forms that they apply to: pictures and text. A .json
    file holds everything, and so do to_json() and weights.
    """

    def __init__(self, model: "Model", given: Any, options: Dict[str, Any]) -> None:
        self._model, self._given = model, given
        # Places may be numbers here: layer=0, or "rollout".
        self._options = {name: str(value) if name in ("layer", "head") and type(value) is int else value for name, value in options.items()}
        model._folder.check_explain(self._options)
        self._files: Dict[str, bytes] = {}
        self.title = ""
        self.cut_to = 0  # tokens read of an input that has more; 0: all
        self.to_json()
        if self._options.keys() & {"kind", "layer", "head", "units"}:
            self.file("")  # a layer that the model does not have is an error now, not when it is shown

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
            if key in ("values", "forecast"):  # what a series holds and what follows, which are no weights
                continue
            name = f"{place}.{key}" if place else key
            if not isinstance(_first_number(value), float) or not isinstance(value, list):
                found.extend(_arrays(value, name))
                continue
            array = np.asarray(value, np.float32)
            rows, columns = tree.get("rows"), tree.get("columns")  # of a grid, or one for each class, that is written as one list
            if isinstance(rows, int) and isinstance(columns, int) and array.ndim == 1 and array.size % max(1, rows * columns) == 0:
                array = array.reshape(rows, columns) if array.size == rows * columns else array.reshape(rows, columns, -1)
            found.append((name, array))
    elif isinstance(tree, list):
        for number, item in enumerate(tree):
            named = item.get("kind", item.get("name", number)) if isinstance(item, dict) else number
            parent = "" if isinstance(item, dict) and "kind" in item else place
            found.extend(_arrays(item, f"{parent}.{named}" if parent else str(named)))
    return found


_INPUTS = {"text": _text_input, "picture": _file_input, "clip": _clip_input, "numbers": _series_input}


class Model:
    """A model folder of any kind. fovea.open(folder) gives the class that fits."""

    def __init__(self, folder: PathLike, *, purpose: Optional[str] = None, compute: str = "", **options: Any) -> None:
        self._folder = _core.Folder(os.fspath(folder), purpose, compute, options)
        self.info: Dict[str, Any] = json.loads(self._folder.info)

    @property
    def labels(self) -> List[str]:
        return self.info.get("labels", [])

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.info.get('model', '')} {self.info.get('folder', '')!r}>"

    def _input(self, item: Any) -> Tuple[Any, Optional[str]]:
        return _INPUTS[self._folder.input](item)

    def _is_one(self, inputs: Any) -> bool:
        if _INPUTS[self._folder.input] is _text_input:  # arrays and columns of texts, and generators, hold several
            return isinstance(inputs, (str, bytes, dict)) or not hasattr(inputs, "__iter__")
        return not isinstance(inputs, (list, tuple))

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

    def evaluate(
        self, files: Union[PathLike, Sequence[PathLike]], *, label_column: str = "", text_column: str = "", pair_column: str = ""
    ) -> Any:
        """How well a classifier does on labelled data: what `fovea classify --test` measures."""
        paths = [files] if isinstance(files, (str, os.PathLike)) else files
        return json.loads(self._folder.evaluate([os.fspath(path) for path in paths], label_column, text_column, pair_column))


def _texts(answer: Dict[str, Any], key: str, options: Dict[str, Any]) -> Any:
    """The text of an answer; with n_best a list of them, best first."""
    if answer is None or options.get("n_best", 1) <= 1:
        return answer and answer[key]
    return [entry[key] for entry in answer.get("n_best", [answer])]


class Translator(Model):
    """Translates texts. options: beam, n_best, length_penalty, ..., as of `fovea translate`."""

    def __init__(self, folder: PathLike, *, compute: str = "") -> None:
        super().__init__(folder, purpose="translate", compute=compute)

    def translate(self, texts: Any, **options: Any) -> Any:
        """A translation for each text; a list of them for each with n_best."""
        found = self.answer(texts, **options)
        return _texts(found, "text", options) if self._is_one(texts) else [_texts(one, "text", options) for one in found]


class Captioner(Model):
    """Describes pictures. options: beam, n_best, length_penalty, max_length, as of `fovea caption`."""

    def __init__(self, folder: PathLike, *, compute: str = "") -> None:
        super().__init__(folder, purpose="caption", compute=compute)

    def caption(self, pictures: Any, **options: Any) -> Any:
        """A caption for each picture; a list of them for each with n_best."""
        found = self.answer(pictures, **options)
        return _texts(found, "caption", options) if self._is_one(pictures) else [_texts(one, "caption", options) for one in found]


class Classifier(Model):
    """Classifies texts. options: global (Longformer and BigBird), pairs (a published model that reads pairs: inputs are a text,
    a tab and a text; cross-encoders and models trained on pairs need no option), rollouts (a glimpse classifier)."""

    def __init__(self, folder: PathLike, *, compute: str = "", **options: Any) -> None:
        super().__init__(folder, purpose="classify", compute=compute, **options)

    def classify(self, inputs: Any, **options: Any) -> Any:
        """{"label": ..., "probabilities": {label: probability}} for each input."""
        return self.answer(inputs, **options)


class ImageClassifier(Classifier):
    """Classifies pictures: paths, bytes of PNG or JPEG files, PIL images, or arrays of uint8."""


class ClipClassifier(Classifier):
    """Classifies clips and bags of pictures: folders of frames, lists of pictures, or arrays [frames, height, width, 3]."""


class Partitioner(Model):
    """Finds ships, their bows and sterns in pictures."""

    def __init__(self, folder: PathLike) -> None:
        super().__init__(folder, purpose="partition")

    def partition(self, pictures: Any) -> Any:
        """The ships of each picture, the surest first: what `fovea partition` prints of them."""
        found = self.answer(pictures)
        return found["ships"] if self._is_one(pictures) else [one["ships"] for one in found]


class SeriesModel(Model):
    """A model of number sequences: forecasts the next steps of a table, or labels or scores cases.

    A table is a .csv or .tsv file (its path or bytes), a dict of columns or a pandas DataFrame; a case is an array
    [features, steps].
    """

    def __init__(self, folder: PathLike, *, compute: str = "") -> None:
        super().__init__(folder, purpose="predict", compute=compute)

    def predict(self, inputs: Any, **options: Any) -> Any:
        """What `fovea predict --json` prints: {"columns", "steps"} of a forecast, a label or a number of a case."""
        return self.answer(inputs, **options)


class Encoder:
    """An encoder of the BERT family: vectors of texts, words for masked places, texts by how well they answer a query.

    options: those of `fovea embed` (pooling, normalize, max_tokens, tokens, chunks, ...), and global.
    """

    def __init__(self, folder: PathLike, *, compute: str = "", **options: Any) -> None:
        self._folder, self._compute, self._options = folder, compute, options
        self._opened: Dict[str, Model] = {}
        self.info: Dict[str, Any] = json.loads(_core.look_into(os.fspath(folder)))

    def _for(self, purpose: str) -> Model:
        if purpose not in self._opened:
            options = self._options if purpose == "embed" else {k: v for k, v in self._options.items() if k == "global"}
            self._opened[purpose] = Model(self._folder, purpose=purpose, compute=self._compute, **options)
        return self._opened[purpose]

    def embed(self, texts: Any, **options: Any) -> Any:
        """[texts, width]; one vector for one text. Of an encoder opened with tokens or chunks: what `fovea embed` prints."""
        if self._options.get("tokens") or self._options.get("chunks"):
            return self._for("embed").answer(texts, **options)
        one = isinstance(texts, str)
        rows = self._for("embed")._folder.vectors([_text_input(text) for text in ([texts] if one else texts)], options)
        return rows[0] if one else rows

    def fill(self, texts: Any, top: int = 5) -> Any:
        """Candidates for the masked places of each text."""
        return self._for("fill").answer(texts, top=top)

    def rerank(self, query: str, texts: Sequence[str]) -> List[Dict[str, Any]]:
        """The texts by how well they answer the query, best first: {"index", "score", "text"}. Needs a cross-encoder."""
        found = self._for("rerank").answer(list(texts), query=query)
        return sorted(({"index": i, **one} for i, one in enumerate(found)), key=lambda one: -one["score"])

    def answer(self, purpose: str, inputs: Any, **options: Any) -> Any:
        """Whatever else the folder can do, by the verb's name."""
        return self._for(purpose).answer(inputs, **options)

    def __repr__(self) -> str:
        return f"<Encoder {self.info.get('model', '')} {os.fspath(self._folder)!r}>"


_CLASSES = {
    "translator": Translator,
    "text classifier": Classifier,
    "image classifier": ImageClassifier,
    "glimpse classifier": ImageClassifier,
    "clip classifier": ClipClassifier,
    "captioner": Captioner,
    "ship detector": Partitioner,
    "model of number sequences": SeriesModel,
    "encoder of the BERT family": Encoder,
}


def open(folder: PathLike, **options: Any) -> Any:  # noqa: A001
    """The folder as the class that fits: Translator, Classifier, Captioner, Encoder, ...; options: those of the class."""
    info = json.loads(_core.look_into(os.fspath(folder)))
    return _CLASSES.get(info["kind"], Model)(folder, **options)
