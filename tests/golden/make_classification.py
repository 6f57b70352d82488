"""Golden values of the text classifiers: weights, loss, gradients, and the losses of ten steps of Adam.

Each model is written here from its paper, a text at a time, on PyTorch's own layers: nothing of how Fovea packs
or fuses is shared. Run with PyTorch 2.13 from this folder: python make_classification.py
"""

import json
import math

import torch
import torch.nn.functional as F
from torch import nn

from make_translation import Weights, store
from safetensors_file import save

VOCABULARY, CLASSES, EMBEDDING, WIDTH = 13, 3, 5, 6
BEGIN, END = 1, 2
TEXTS = [  # sentences of words, and the class
    ([[4, 7, 9, 5], [6, 11]], 0),
    ([[8]], 2),
    ([[10, 12, 6, 4, 11, 7], [5], [9, 9, 12]], 1),
    ([[5, 5, 9]], 1),
]


def keep(w, name, module):
    """The module's parameters, rounded, among the weights."""
    for key, value in module.named_parameters():
        with torch.no_grad():
            value.add_(0.2 * torch.randn_like(value))
            value.copy_(value.to(torch.bfloat16).to(torch.float32))
        w[f"{name}.{key}"] = value
    return module


def recurrent(w, name, kind, inputs, layers=1, both=True):
    return keep(w, name, kind(inputs, WIDTH, layers, bidirectional=both))


def make_pooling(w, name, score, width, hidden=0):
    if score == "additive":
        w.make(f"{name}.query", hidden or width)
        w.make(f"{name}.weight", hidden or width, width)
        w.make(f"{name}.bias", hidden or width)
    else:
        w.make(f"{name}.query", width)


def pool(w, name, score, states):
    """states: [tokens, width] -> [width]"""
    query = w[f"{name}.query"]
    if score == "additive":
        scores = torch.tanh(states @ w[f"{name}.weight"].T + w[f"{name}.bias"]) @ query
    elif score == "dot":
        scores = states @ query
    elif score == "scaled_dot":
        scores = states @ query / math.sqrt(len(query))
    else:
        scores = F.cosine_similarity(states, query[None]) / float(score[7:-1])
    return torch.softmax(scores, 0) @ states


class Lstm:
    def __init__(self, settings):
        self.settings, self.w = settings, Weights()
        w, both = self.w, settings["bidirectional"]
        w.make("embedding", VOCABULARY, EMBEDDING)
        self.encoder = recurrent(w, "encoder", nn.LSTM, EMBEDDING, settings["layers"], both)
        states = WIDTH * (2 if both else 1)
        if settings["pooling"] == "attention":
            make_pooling(w, "attention", settings["score"], states, settings["attention_width"])
        self.output = keep(w, "output", nn.Linear(states, CLASSES))

    def logits(self, sentences):
        words = sum(sentences, []) + [END]
        states, (last, _) = self.encoder(self.w["embedding"][words])
        kind = self.settings["pooling"]
        if kind == "attention":
            return self.output(pool(self.w, "attention", self.settings["score"], states))
        if kind == "mean":
            return self.output(states.mean(0))
        return self.output(last[-2 if self.settings["bidirectional"] else -1 :].reshape(-1))


class Han:
    def __init__(self, settings):
        self.w = w = Weights()
        w.make("embedding", VOCABULARY, EMBEDDING)
        self.words = recurrent(w, "words", nn.GRU, EMBEDDING)
        make_pooling(w, "word_attention", "additive", 2 * WIDTH, settings["attention_width"])
        self.sentences = recurrent(w, "sentences", nn.GRU, 2 * WIDTH)
        make_pooling(w, "sentence_attention", "additive", 2 * WIDTH, settings["attention_width"])
        self.output = keep(w, "output", nn.Linear(2 * WIDTH, CLASSES))

    def logits(self, sentences):
        w = self.w
        read = [self.words(w["embedding"][s + [END]])[0] for s in sentences]
        whole = self.sentences(torch.stack([pool(w, "word_attention", "additive", r) for r in read]))[0]
        return self.output(pool(w, "sentence_attention", "additive", whole))


class Transformer:
    """seen(i, j) says whether token i of a text sees token j."""

    def __init__(self, settings, seen):
        self.settings, self.seen, self.w = settings, seen, Weights()
        w, width, first = self.w, settings["width"], settings["norm_first"]
        w.make("embedding", VOCABULARY, width)
        if settings["positions"] == "learned":
            w.make("positions", settings["max_positions"], width)
        layer = nn.TransformerEncoderLayer(
            width, settings["heads"], settings["hidden"], 0.0, settings["activation"], batch_first=True, norm_first=first
        )
        norm = nn.LayerNorm(width) if first else None
        encoder = nn.TransformerEncoder(layer, settings["layers"], norm, enable_nested_tensor=False)
        self.encoder = keep(w, "encoder", encoder)
        if settings["pooling"] == "attention":
            make_pooling(w, "attention", settings["score"], width)
        self.output = keep(w, "output", nn.Linear(width, CLASSES))

    def logits(self, sentences):
        w, width = self.w, self.settings["width"]
        words = [BEGIN] + sum(sentences, []) + [END]
        count = len(words)
        x = w["embedding"][words]
        if self.settings["positions"] == "learned":
            x = x * math.sqrt(width) + w["positions"][:count]
        elif self.settings["positions"] == "sinusoid":
            rate = torch.tensor(10000.0) ** (-(torch.arange(0, width, 2)) / width)
            angle = torch.arange(count)[:, None] * rate
            x = x * math.sqrt(width) + torch.stack([angle.sin(), angle.cos()], 2).reshape(count, width)
        hidden = torch.tensor([[not self.seen(i, j) for j in range(count)] for i in range(count)])
        states = self.encoder(x[None], mask=hidden)[0]
        kind = self.settings["pooling"]
        if kind == "attention":
            return self.output(pool(w, "attention", self.settings["score"], states))
        return self.output(states.mean(0) if kind == "mean" else states[0])


def loss_of(model):
    logits = torch.stack([model.logits(sentences) for sentences, _ in TEXTS])
    return F.cross_entropy(logits, torch.tensor([label for _, label in TEXTS]), label_smoothing=0.1)


def main():
    torch.manual_seed(5)
    tensors, cases = {}, []

    def add(model, settings, made):
        store(tensors, str(len(cases)), made, loss_of)
        cases.append({"model": model, "settings": settings})

    sizes = {"embedding": EMBEDDING, "width": WIDTH, "dropout": 0.0}
    for index, score in enumerate(["additive", "dot", "scaled_dot", "cosine(0.5)"]):
        settings = {**sizes, "layers": 1 + index % 2, "bidirectional": index != 1, "pooling": "attention"}
        settings.update({"score": score, "attention_width": 4 if index == 0 else 0})
        add("lstm", settings, Lstm(settings))
    for index, kind in enumerate(["mean", "last", "last"]):
        settings = {**sizes, "layers": 2, "bidirectional": index != 2, "pooling": kind}
        add("lstm", settings, Lstm(settings))
    for width in (0, 5):
        settings = {**sizes, "attention_width": width}
        add("han", settings, Han(settings))
    patterns = [
        ("full", lambda i, j: True),
        ("window(1,1) | global(0)", lambda i, j: abs(i - j) <= 1 or i == 0 or j == 0),
        ("block_window(2,1,0) | global(0..1)", lambda i, j: 0 <= i // 2 - j // 2 <= 1 or i < 2 or j < 2),
    ]
    for index, (pattern, seen) in enumerate(patterns):
        settings = {"width": 8, "heads": 2, "hidden": 12, "layers": 2, "dropout": 0.0, "norm_first": index != 1}
        settings["positions"] = ["sinusoid", "learned", "none"][index]
        settings.update({"max_positions": 16, "activation": ["gelu", "relu", "gelu"][index]})
        settings["self_attention"] = f"scaled_dot / {pattern} / soft"
        settings["pooling"] = ["attention", "first", "mean"][index]
        settings["score"] = "additive"
        add("transformer", settings, Transformer(settings, seen))
    save("classification.safetensors", tensors)
    batch = {"vocabulary": VOCABULARY, "classes": CLASSES, "texts": [list(text) for text in TEXTS]}
    with open("classification.json", "w") as file:
        json.dump({"batch": batch, "cases": cases}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
