"""Golden values of pairs, several labels and numbers: heads and losses of the text classifiers and of Hugging
Face's BertForSequenceClassification; selections and gated scores of attention pooling; the last output; global
tokens chosen by content, added ones, and patterns that differ between heads.

Weights, loss, gradients and the losses of ten steps of Adam, as in make_classification.py.
Run with transformers 5 and PyTorch 2.13 from this folder: python make_reading.py
"""

import json
import math

import torch
import torch.nn.functional as F
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

from make_bert import BERT, rounded
from make_classification import BEGIN, EMBEDDING, END, VOCABULARY, WIDTH, keep, recurrent
from make_translation import Weights, store
from safetensors_file import save

OUTPUTS = 3
# First text, second text (sentences of words; none where texts are no pairs), class, labels, number.
TEXTS = [
    ([[4, 7, 9, 5], [6, 11]], [[4, 7], [12]], 0, [1, 0, 1], 2.5),
    ([[8]], [[10, 6, 5]], 2, [0, 0, 0], -1.0),
    ([[10, 12, 6, 4, 11, 7], [5], [9, 9, 12]], [[9, 8, 8, 4, 4, 7]], 1, [1, 1, 1], 0.75),
    ([[5, 5, 9]], [[5, 5, 9]], 1, [0, 1, 0], 4.0),
]
MEAN, DEVIATION = 1.5, 2.0  # of the scale of numbers


def sparsemax(x):
    order = torch.sort(x, descending=True).values
    sums = order.cumsum(0) - 1
    count = (order * torch.arange(1, len(x) + 1) > sums).sum()
    return torch.clamp(x - sums[count - 1] / count, min=0)


def select(scores, selection):
    if selection == "soft":
        return torch.softmax(scores, 0)
    if selection == "sparsemax":
        return sparsemax(scores)
    if selection == "sigmoid":
        return torch.sigmoid(scores)
    if selection == "identity":
        return scores
    kept = torch.topk(scores, min(int(selection[6:-1]), len(scores))).indices
    return torch.zeros_like(scores).index_add(0, kept, torch.softmax(scores[kept], 0))


class Pooling:
    def __init__(self, w, name, settings, width):
        self.w, self.name, self.settings = w, name, settings
        hidden = settings.get("attention_width") or width
        w.make(f"{name}.query", hidden)
        w.make(f"{name}.weight", hidden, width)
        w.make(f"{name}.bias", hidden)
        if settings["score"] == "gated":
            w.make(f"{name}.gate_weight", hidden, width)
            w.make(f"{name}.gate_bias", hidden)

    def __call__(self, states):
        w, name = self.w, self.name
        keys = torch.tanh(F.linear(states, w[f"{name}.weight"], w[f"{name}.bias"]))
        if self.settings["score"] == "gated":
            keys = keys * torch.sigmoid(F.linear(states, w[f"{name}.gate_weight"], w[f"{name}.gate_bias"]))
        return select(keys @ w[f"{name}.query"], self.settings["selection"]) @ states


class Head:
    """From the vector of a text, or those of a pair, to the outputs."""

    def __init__(self, w, case, width, joined):
        self.pair = None
        if case["pairs"] and not joined:
            self.pair = keep(w, "pair.hidden", nn.Linear(4 * width, width))
        outputs = 1 if case["target"] == "number" else OUTPUTS
        self.output = keep(w, "output", nn.Linear(width, outputs))

    def __call__(self, vectors):
        if self.pair is not None:
            u, v = vectors
            vectors = [torch.tanh(self.pair(torch.cat([u, v, (u - v).abs(), u * v])))]
        return self.output(vectors[0])


class Lstm:
    def __init__(self, case):
        self.case, self.w = case, Weights()
        self.w.make("embedding", VOCABULARY, EMBEDDING)
        self.encoder = recurrent(self.w, "encoder", nn.LSTM, EMBEDDING)
        self.pool = Pooling(self.w, "attention", case["settings"], 2 * WIDTH)
        self.head = Head(self.w, case, 2 * WIDTH, False)

    def logits(self, texts):
        vectors = []
        for sentences in texts:
            vectors.append(self.pool(self.encoder(self.w["embedding"][sum(sentences, []) + [END]])[0]))
        return self.head(vectors)


class Han:
    def __init__(self, case):
        self.case, self.w = case, Weights()
        self.w.make("embedding", VOCABULARY, EMBEDDING)
        self.words = recurrent(self.w, "words", nn.GRU, EMBEDDING)
        self.word_pool = Pooling(self.w, "word_attention", case["settings"], 2 * WIDTH)
        self.sentences = recurrent(self.w, "sentences", nn.GRU, 2 * WIDTH)
        self.sentence_pool = Pooling(self.w, "sentence_attention", case["settings"], 2 * WIDTH)
        self.head = Head(self.w, case, 2 * WIDTH, False)

    def logits(self, texts):
        vectors = []
        for sentences in texts:
            read = [self.word_pool(self.words(self.w["embedding"][s + [END]])[0]) for s in sentences]
            vectors.append(self.sentence_pool(self.sentences(torch.stack(read))[0]))
        return self.head(vectors)


class Transformer:
    """seen(head, i, j): whether token i of a text sees token j, which count the added tokens."""

    def __init__(self, case, seen):
        self.case, self.seen, self.w = case, seen, Weights()
        s = case["settings"]
        width = s["width"]
        self.w.make("embedding", VOCABULARY, width)
        if case["pairs"]:
            self.w.make("segments", 2, width)
        if s["added_global"]:
            self.w.make("global_tokens", s["added_global"], width)
        layer = nn.TransformerEncoderLayer(
            width, s["heads"], s["hidden"], 0.0, "gelu", batch_first=True, norm_first=True
        )
        encoder = nn.TransformerEncoder(layer, s["layers"], nn.LayerNorm(width), enable_nested_tensor=False)
        self.encoder = keep(self.w, "encoder", encoder)
        if s["pooling"] == "attention":
            self.pool = Pooling(self.w, "attention", s, width)
        self.head = Head(self.w, case, width, True)

    def logits(self, texts):
        w, s = self.w, self.case["settings"]
        width, added = s["width"], s["added_global"]
        words, kinds = [BEGIN], [0]
        for kind, sentences in enumerate(texts):
            words += sum(sentences, []) + [END]
            kinds += [kind] * (len(words) - len(kinds))
        count = len(words)
        rate = torch.tensor(10000.0) ** (-(torch.arange(0, width, 2)) / width)
        angle = torch.arange(count)[:, None] * rate
        x = w["embedding"][words] * math.sqrt(width)
        x = x + torch.stack([angle.sin(), angle.cos()], 2).reshape(count, width)
        if self.case["pairs"]:
            x = x + w["segments"][kinds]
        if added:
            x = torch.cat([w["global_tokens"], x])
        total = count + added
        everywhere = [i < added or words[i - added] in self.case.get("global_ids", []) for i in range(total)]
        if s["global"] == "first":
            everywhere[added] = True
        hidden = torch.tensor(
            [
                [
                    [not (everywhere[i] or everywhere[j] or self.seen(h, i, j)) for j in range(total)]
                    for i in range(total)
                ]
                for h in range(s["heads"])
            ]
        )
        states = self.encoder(x[None], mask=hidden)[0][added:]
        if s["pooling"] == "attention":
            return self.head([self.pool(states)])
        chosen = {"first": states[0], "last": states[-1], "mean": states.mean(0)}
        return self.head([chosen[s["pooling"]]])


def loss_of(model):
    case = model.case
    logits = torch.stack([model.logits([a, b] if case["pairs"] else [a]) for a, b, _, _, _ in TEXTS])
    if case["target"] == "one":
        return F.cross_entropy(logits, torch.tensor([label for _, _, label, _, _ in TEXTS]), label_smoothing=0.1)
    if case["target"] == "several":
        wanted = torch.tensor([labels for _, _, _, labels, _ in TEXTS], dtype=torch.float32)
        return F.binary_cross_entropy_with_logits(logits, wanted)
    wanted = torch.tensor([number for _, _, _, _, number in TEXTS])
    return F.mse_loss(logits[:, 0], (wanted - MEAN) / DEVIATION)


class Bert:
    """transformers' own model, head and loss, over padded pairs or single texts; its labels are not scaled."""

    def __init__(self, case):
        problem = {"several": "multi_label_classification", "number": "regression"}[case["target"]]
        outputs = 1 if case["target"] == "number" else OUTPUTS
        config = BertConfig(**{**BERT, "num_labels": outputs, "problem_type": problem, "max_position_embeddings": 20})
        config._attn_implementation = "eager"
        self.case, self.model = case, rounded(BertForSequenceClassification(config)).train()
        self.w = dict(self.model.named_parameters())
        case["config"] = json.loads(config.to_json_string(use_diff=False))

    def loss(self):
        rows, kinds = [], []
        for a, b, _, _, _ in TEXTS:
            first = [2] + sum(a, []) + [3]
            second = sum(b, []) + [3] if self.case["pairs"] else []
            rows.append(first + second)
            kinds.append([0] * len(first) + [1] * len(second))
        size = max(map(len, rows))
        pad = lambda lists: torch.tensor([row + [0] * (size - len(row)) for row in lists])
        mask = torch.tensor([[1] * len(row) + [0] * (size - len(row)) for row in rows])
        wanted = [labels if self.case["target"] == "several" else [number] for _, _, _, labels, number in TEXTS]
        labels = torch.tensor(wanted, dtype=torch.float32)
        return self.model(input_ids=pad(rows), attention_mask=mask, token_type_ids=pad(kinds), labels=labels).loss


def main():
    torch.manual_seed(17)
    tensors, cases = {}, []

    def add(made, loss):
        store(tensors, str(len(cases)), made, loss)
        cases.append(made.case)

    recurrent_sizes = {"embedding": EMBEDDING, "width": WIDTH, "dropout": 0.0}
    choices = [
        (True, "number", "additive", "soft"),
        (True, "one", "gated", "sparsemax"),
        (False, "several", "gated", "identity"),
        (False, "number", "additive", "sigmoid"),
        (True, "several", "additive", "top_k(2)"),
        (False, "one", "gated", "soft"),
    ]
    for name, kind in (("lstm", Lstm), ("han", Han)):
        for pairs, target, score, selection in choices:
            settings = {**recurrent_sizes, "score": score, "selection": selection, "attention_width": 4}
            add(kind({"model": name, "settings": settings, "pairs": pairs, "target": target}), loss_of)
    window = lambda h, i, j: abs(i - j) <= 1
    by_head = lambda h, i, j: (abs(i - j) <= 1) if h == 0 else ((i - j) % 3 == 0)
    transformers = [  # pattern, who sees whom, global, ids of global tokens, added, pooling, pairs, target
        ("full", lambda h, i, j: True, "", [], 0, "last", True, "number"),
        ("window(1,1)", window, "[SEP]", [END], 0, "first", True, "one"),
        ("window(1,1)", window, "first w5 w9", [5, 9], 0, "attention", False, "several"),
        ("window(1,1)", window, "", [], 2, "last", False, "one"),
        ("window(1,1)", window, "[SEP]", [END], 2, "mean", True, "several"),
        ("heads(window(1,1); strided(3))", by_head, "first", [], 1, "attention", False, "number"),
    ]
    for pattern, seen, rule, ids, added, pooling, pairs, target in transformers:
        settings = {"width": 8, "heads": 2, "hidden": 12, "layers": 2, "dropout": 0.0}
        settings.update({"self_attention": f"scaled_dot / {pattern} / soft", "pooling": pooling})
        settings.update({"global": rule, "added_global": added, "score": "gated", "selection": "soft"})
        # The words of `rule` for the test's vocabulary; "first" is a place, not a word.
        case = {"model": "transformer", "settings": settings, "pairs": pairs, "target": target}
        if ids:
            case["global_ids"] = ids
        if rule.startswith("first "):
            case["settings"]["global"] = "first"
            made = Transformer(case, seen)
            add(made, loss_of)
            case["settings"]["global"] = rule
            continue
        add(Transformer(case, seen), loss_of)
    for pairs, target in ((True, "number"), (False, "several")):
        add(Bert({"model": "bert", "settings": {}, "pairs": pairs, "target": target}), lambda made: made.loss())
    save("reading.safetensors", tensors)
    batch = {"vocabulary": VOCABULARY, "classes": OUTPUTS, "mean": MEAN, "deviation": DEVIATION}
    batch["texts"] = [list(text) for text in TEXTS]
    with open("reading.json", "w") as file:
        json.dump({"batch": batch, "cases": cases}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
