"""Golden values of the models of number sequences: weights, loss, gradients, and the losses of ten steps of Adam.

Each model is written here a series at a time on PyTorch's own layers; patches are made by indexing, and instance
normalisation follows its paper: nothing of how Fovea packs or cuts is shared. Run with PyTorch 2.13 from this folder:
python make_series.py
"""

import json

import torch
import torch.nn.functional as F
from torch import nn

from make_classification import keep, make_pooling, pool
from make_translation import Weights, store
from safetensors_file import save

FEATURES, WIDTH = 3, 8


def sinusoid(count, width):
    rate = torch.tensor(10000.0) ** (-(torch.arange(0, width, 2)) / width)
    angle = torch.arange(count)[:, None] * rate
    return torch.stack([angle.sin(), angle.cos()], 2).reshape(count, width)


class Series:
    def __init__(self, settings, counts, series, known, targets, seen=lambda i, j: True):
        self.s, self.c, self.series, self.known, self.targets, self.seen = settings, counts, series, known, targets, seen
        self.w = w = Weights()
        s, c = settings, counts
        held = 1 if s["channels"] == "independent" else c["features"]
        token = s["patch"] * (held + c["known"])
        if s["model"] == "transformer":
            self.input = keep(w, "input", nn.Linear(token, WIDTH))
            if s["positions"] == "learned":
                w.make("positions", s["max_positions"], WIDTH)
            layer = nn.TransformerEncoderLayer(WIDTH, 2, 12, 0.0, "gelu", batch_first=True, norm_first=True)
            self.encoder = keep(w, "encoder", nn.TransformerEncoder(layer, 2, nn.LayerNorm(WIDTH), False))
            state = WIDTH
        else:
            self.encoder = keep(w, "encoder", nn.LSTM(token, WIDTH, 1, bidirectional=True))
            state = 2 * WIDTH
        if s["pooling"] == "attention":
            make_pooling(w, "attention", "additive", state)
        width = state * (len(self.firsts(c["window"])) if s["pooling"] == "flatten" else 1)
        out = c["outputs"]
        if c["targets"] > 0 and held > 1:
            out *= c["targets"]
        if c["targets"] == 0 and s["channels"] == "independent":
            width *= c["features"]
        self.output = keep(w, "output", nn.Linear(width, out))

    def firsts(self, steps):
        """The first step of every patch: the last patch ends with the series."""
        first, stride = [steps - self.s["patch"]], self.s["stride"]
        while first[0] > 0:
            first.insert(0, first[0] - stride)
        return first

    def sequence(self, values, known):
        """values: [steps, held] -> the summed-up states."""
        s, steps = self.s, len(values)
        rows = torch.cat([values, known], 1)
        patches = [[max(0, first + p) for p in range(s["patch"])] for first in self.firsts(steps)]
        tokens = torch.stack([rows[places].reshape(-1) for places in patches])
        count = len(tokens)
        if s["model"] == "transformer":
            x = self.input(tokens)
            if s["positions"] == "learned":
                x = x + self.w["positions"][:count]
            elif s["positions"] == "sinusoid":
                x = x + sinusoid(count, WIDTH)
            hidden = torch.tensor([[not self.seen(i, j) for j in range(count)] for i in range(count)])
            states = self.encoder(x[None], mask=hidden)[0]
        else:
            states = self.encoder(tokens)[0]
        kind = s["pooling"]
        if kind == "attention":
            return pool(self.w, "attention", "additive", states)
        return {"mean": states.mean(0), "first": states[0], "last": states[-1], "flatten": states.reshape(-1)}[kind]

    def outputs(self, values, known):
        s, c = self.s, self.c
        mean, deviation = torch.zeros(c["features"]), torch.ones(c["features"])
        if s["normalize"] == "instance":
            mean, deviation = values.mean(0), torch.sqrt(values.var(0, unbiased=False) + 1e-5)
        values = (values - mean) / deviation
        if s["channels"] == "mixed":
            out = self.output(self.sequence(values, known))
        else:
            parts = [self.sequence(values[:, f : f + 1], known) for f in range(c["features"])]
            out = self.output(torch.stack(parts) if c["targets"] > 0 else torch.cat(parts))
        if c["targets"] == 0:
            return out
        t = c["targets"]
        return out.reshape(t, c["outputs"]) * deviation[:t, None] + mean[:t, None]


def loss_of(model):
    out = torch.stack([model.outputs(x, k) for x, k in zip(model.series, model.known)])
    if isinstance(model.targets, list):
        return F.cross_entropy(out, torch.tensor(model.targets), label_smoothing=0.1)
    return F.mse_loss(out, model.targets)


def main():
    torch.manual_seed(11)
    tensors, cases = {}, []

    def add(settings, counts, lengths, labels=None, seen=lambda i, j: True):
        settings = {"patch": 1, "stride": 1, "channels": "mixed", "normalize": "none", **settings}
        counts = {"features": FEATURES, "known": 0, "window": 0, "targets": 0, "outputs": 1, **counts}
        series = [torch.randn(n, counts["features"]).cumsum(0) for n in lengths]
        known = [torch.rand(n, counts["known"]) - 0.5 for n in lengths]
        shape = [len(lengths), counts["targets"], counts["outputs"]] if counts["targets"] else [len(lengths), 1]
        targets = labels or torch.randn(*shape)
        name = str(len(cases))
        made = Series(settings, counts, series, known, targets, seen)
        store(tensors, name, made, loss_of)
        tensors[f"{name}/values"], tensors[f"{name}/known"] = torch.cat(series), torch.cat(known)
        if labels is None:
            tensors[f"{name}/targets"] = targets
        stored = {k: v for k, v in settings.items() if k != "model"}
        if settings["model"] == "transformer":
            stored.update({"width": WIDTH, "heads": 2, "hidden": 12, "layers": 2})
        else:
            stored.update({"width": WIDTH})
        stored["dropout"] = 0.0
        cases.append(
            {"model": settings["model"], "settings": stored, "counts": counts, "lengths": lengths, "labels": labels or []}
        )

    t = {"model": "transformer", "positions": "sinusoid"}
    causal = {"self_attention": "scaled_dot / causal / soft"}
    add({**t, "pooling": "attention"}, {"outputs": 4}, [5, 1, 9, 3], [0, 3, 1, 2])
    add(
        {**t, "pooling": "flatten", "patch": 4, "stride": 2, "channels": "independent", "normalize": "instance"},
        {"window": 11, "targets": 3, "outputs": 5},
        [11, 11],
    )
    add(
        {**t, "positions": "learned", "max_positions": 12, "pooling": "mean", "normalize": "instance", **causal},
        {"window": 9, "targets": 2, "outputs": 3, "known": 2},
        [9, 9, 9],
        seen=lambda i, j: j <= i,
    )
    add(
        {**t, "positions": "none", "pooling": "last", "patch": 3, "stride": 3, "channels": "independent"},
        {"outputs": 3, "known": 1},
        [7, 2, 4],
        [2, 0, 1],
    )
    add({"model": "lstm", "pooling": "attention"}, {}, [6, 2, 8])
    add(
        {"model": "lstm", "pooling": "last", "patch": 2, "stride": 1, "normalize": "instance"},
        {"window": 6, "targets": 1, "outputs": 2},
        [6, 6],
    )
    save("series.safetensors", tensors)
    with open("series.json", "w") as file:
        json.dump(cases, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
