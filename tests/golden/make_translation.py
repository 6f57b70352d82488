"""Golden values of the translation models: weights, loss, gradients, and the losses of ten steps of Adam.

Each model is written here from its paper, a sentence at a time and a step at a time, on PyTorch's own cells:
nothing of how Fovea batches or fuses is shared. Run with PyTorch 2.13 from this folder: python
make_translation.py
"""

import json
import math

import torch
import torch.nn.functional as F

from safetensors_file import save

VOCABULARY, EMBEDDING, WIDTH = 13, 5, 6
BEGIN, END = 1, 2
SENTENCES = [  # source and target words
    ([4, 7, 9, 5], [6, 11, 4]),
    ([8], [5, 7, 12, 9, 10]),
    ([10, 12, 6, 4, 11, 7], [8]),
    ([5, 5, 9], [4, 4, 12, 6]),
]


class Weights(dict):
    def make(self, name, *shape, scale=0.6):
        value = torch.randn(*shape) * scale
        self[name] = value.to(torch.bfloat16).to(torch.float32).requires_grad_()


def gru_cell(x, h, w_ih, w_hh, b_ih, b_hh):
    return torch.gru_cell(x[None], h[None], w_ih, w_hh, b_ih, b_hh)[0]


def lstm_cell(x, state, w_ih, w_hh, b_ih, b_hh):
    h, c = torch.lstm_cell(x[None], (state[0][None], state[1][None]), w_ih, w_hh, b_ih, b_hh)
    return h[0], c[0]


def attention_weights(w, score, query_width, key_width):
    hidden = query_width
    if score == "location":
        w.make("attention.table", 256, query_width)
    elif score in ("bilinear", "general"):
        w.make("attention.W", query_width, key_width)
    elif score == "additive":
        w.make("attention.W", hidden, key_width)
        w.make("attention.U", hidden, query_width)
    elif score == "concat":
        w.make("attention.W", hidden, key_width + query_width)
    elif query_width != key_width:
        w.make("attention.key", query_width, key_width)
    if score in ("additive", "concat"):
        w.make("attention.b", hidden)
        w.make("attention.v", hidden)


def scores_of(w, score, query, memory):
    if score == "location":
        return w["attention.table"][: len(memory)] @ query
    if score in ("bilinear", "general"):
        return memory @ (w["attention.W"].T @ query)
    if score == "additive":
        hidden = torch.tanh(memory @ w["attention.W"].T + w["attention.U"] @ query + w["attention.b"])
        return hidden @ w["attention.v"]
    if score == "concat":
        both = torch.cat([memory, query.expand(len(memory), -1)], 1)
        return torch.tanh(both @ w["attention.W"].T + w["attention.b"]) @ w["attention.v"]
    keys = memory @ w["attention.key"].T if "attention.key" in w else memory
    if score == "cosine(0.5)":
        return F.cosine_similarity(keys, query[None], dim=1) / 0.5
    return keys @ query / (math.sqrt(len(query)) if score == "scaled_dot" else 1)


class Bahdanau:
    def __init__(self, settings, attends):
        self.score = settings.get("score", "additive") if attends else None
        self.maxout = settings.get("output", "maxout") == "maxout"
        self.w = w = Weights()
        w.make("target_embedding", VOCABULARY, EMBEDDING)
        if settings.get("tie") != "all":
            w.make("source_embedding", VOCABULARY, EMBEDDING)
        if settings.get("tie", "none") == "none":
            w.make("output", VOCABULARY, EMBEDDING)
        w.make("output_bias", VOCABULARY)
        for way in ("", "_reverse"):
            w.make("encoder.weight_ih_l0" + way, 3 * WIDTH, EMBEDDING)
            w.make("encoder.weight_hh_l0" + way, 3 * WIDTH, WIDTH)
            w.make("encoder.bias_ih_l0" + way, 3 * WIDTH)
            w.make("encoder.bias_hh_l0" + way, 3 * WIDTH)
        w.make("bridge.weight", WIDTH, WIDTH)
        w.make("bridge.bias", WIDTH)
        if attends:
            attention_weights(w, self.score, WIDTH, 2 * WIDTH)
        read = (2 if self.maxout else 1) * EMBEDDING
        for name, rows in (("decoder", 3 * WIDTH), ("readout", read)):
            w.make(name + ".embedding", rows, EMBEDDING)
            w.make(name + ".context", rows, 2 * WIDTH)
            w.make(name + ".state", rows, WIDTH)
            w.make(name + ".bias", rows)
        w.make("decoder.state_bias", 3 * WIDTH)

    def logits(self, source, target):
        w = self.w
        x = w.get("source_embedding", w["target_embedding"])[source]
        ways = {}
        for way, order in (("", range(len(source))), ("_reverse", reversed(range(len(source))))):
            h, states = torch.zeros(WIDTH), [None] * len(source)
            for i in order:
                cell = [w[f"encoder.{part}_l0{way}"] for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")]
                h = states[i] = gru_cell(x[i], h, *cell)
            ways[way] = states
        memory = torch.stack([torch.cat(pair) for pair in zip(ways[""], ways["_reverse"])])
        whole = torch.cat([ways[""][-1], ways["_reverse"][0]])
        s = torch.tanh(w["bridge.weight"] @ ways["_reverse"][0] + w["bridge.bias"])
        w_ih = torch.cat([w["decoder.embedding"], w["decoder.context"]], 1)
        w_read = torch.cat([w["readout.embedding"], w["readout.context"], w["readout.state"]], 1)
        table = w.get("output", w["target_embedding"])
        out = []
        for token in target:
            y = w["target_embedding"][token]
            c = whole if self.score is None else scores_of(w, self.score, s, memory).softmax(0) @ memory
            s = gru_cell(torch.cat([y, c]), s, w_ih, w["decoder.state"], w["decoder.bias"], w["decoder.state_bias"])
            t = w_read @ torch.cat([y, c, s]) + w["readout.bias"]
            if self.maxout:
                t = torch.maximum(t[:EMBEDDING], t[EMBEDDING:])
            out.append(table @ t + w["output_bias"])
        return torch.stack(out)


class Luong:
    def __init__(self, settings):
        self.settings = settings
        self.layers = settings["layers"]
        self.both = settings.get("bidirectional", False)
        self.w = w = Weights()
        w.make("target_embedding", VOCABULARY, EMBEDDING)
        w.make("source_embedding", VOCABULARY, EMBEDDING)
        w.make("output", VOCABULARY, WIDTH)
        w.make("output_bias", VOCABULARY)
        half = WIDTH // 2 if self.both else WIDTH
        for side, width, ways in (
            ("encoder", half, ("", "_reverse") if self.both else ("",)),
            ("decoder", WIDTH, ("",)),
        ):
            for layer in range(self.layers):
                for way in ways:
                    w.make(f"{side}.weight_ih_l{layer}{way}", 4 * width, EMBEDDING if layer == 0 else WIDTH)
                    w.make(f"{side}.weight_hh_l{layer}{way}", 4 * width, width)
                    w.make(f"{side}.bias_ih_l{layer}{way}", 4 * width)
                    w.make(f"{side}.bias_hh_l{layer}{way}", 4 * width)
        attention_weights(w, settings["score"], WIDTH, WIDTH)
        if settings["locality"] == "local_p":
            w.make("attention.position.W", WIDTH, WIDTH)
            w.make("attention.position.v", WIDTH)
        if settings["input_feeding"]:
            w.make("decoder.weight_feed", 4 * WIDTH, WIDTH)
        w.make("combine.context", WIDTH, WIDTH)
        w.make("combine.state", WIDTH, WIDTH)

    def cell(self, side, layer, way=""):
        parts = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
        return [self.w[f"{side}.{part}_l{layer}{way}"] for part in parts]

    def encode(self, source):
        x, last = self.w["source_embedding"][source], []
        for layer in range(self.layers):
            ways, ends = [], []
            for way in ("", "_reverse") if self.both else ("",):
                order = range(len(x)) if way == "" else reversed(range(len(x)))
                state = (torch.zeros(WIDTH // (2 if self.both else 1)),) * 2
                states = [None] * len(x)
                for i in order:
                    state = lstm_cell(x[i], state, *self.cell("encoder", layer, way))
                    states[i] = state[0]
                ways.append(torch.stack(states))
                ends.append(state)
            x = torch.cat(ways, 1)
            last.append(tuple(torch.cat([end[k] for end in ends]) for k in range(2)))
        return x, last

    def look(self, h, memory, t):
        settings, size, reach = self.settings, len(memory), self.settings["window"]
        scores = scores_of(self.w, settings["score"], h, memory)
        places = torch.arange(size)
        if settings["locality"] == "global":
            return scores.softmax(0) @ memory
        if settings["locality"] == "local_m":
            seen = (places - min(t, size - 1)).abs() <= reach
            return scores.masked_fill(~seen, -math.inf).softmax(0) @ memory
        p = size * torch.sigmoid(
            self.w["attention.position.v"] @ torch.tanh(self.w["attention.position.W"] @ h) / math.sqrt(WIDTH)
        )
        seen = (places - p).abs() <= reach
        soft = scores.masked_fill(~seen, -math.inf).softmax(0)
        return (soft * torch.exp(-((places - p) ** 2) / (2 * (reach / 2) ** 2))) @ memory

    def logits(self, source, target):
        w, feeds = self.w, self.settings["input_feeding"]
        memory, states = self.encode(source)
        seen, out = torch.zeros(WIDTH), []
        for t, token in enumerate(target):
            x = w["target_embedding"][token]
            for layer in range(self.layers):
                w_ih, w_hh, b_ih, b_hh = self.cell("decoder", layer)
                if layer == 0 and feeds:
                    w_ih, x = torch.cat([w_ih, w["decoder.weight_feed"]], 1), torch.cat([x, seen])
                states[layer] = lstm_cell(x, states[layer], w_ih, w_hh, b_ih, b_hh)
                x = states[layer][0]
            both = torch.cat([w["combine.context"], w["combine.state"]], 1)
            seen = torch.tanh(both @ torch.cat([self.look(x, memory, t), x]))
            out.append(w["output"] @ seen + w["output_bias"])
        return torch.stack(out)


class Transformer:
    """PyTorch's layers; embeddings, positions and the output layer around them."""

    def __init__(self, settings):
        width, first = settings["width"], settings["norm_first"]
        options = dict(
            d_model=width,
            nhead=settings["heads"],
            dim_feedforward=settings["hidden"],
            dropout=0.0,
            batch_first=True,
            norm_first=first,
        )
        norm = (lambda: torch.nn.LayerNorm(width)) if first else (lambda: None)
        self.encoder = torch.nn.TransformerEncoder(
            torch.nn.TransformerEncoderLayer(**options),
            settings["encoder_layers"],
            norm(),
            enable_nested_tensor=False,
        )
        self.decoder = torch.nn.TransformerDecoder(
            torch.nn.TransformerDecoderLayer(**options), settings["decoder_layers"], norm()
        )
        self.w = w = Weights()
        w.make("target_embedding", VOCABULARY, width)
        if settings["tie"] == "none":
            w.make("source_embedding", VOCABULARY, width)
            w.make("output", VOCABULARY, width)
        for name, module in (("encoder", self.encoder), ("decoder", self.decoder)):
            for key, value in module.named_parameters():
                with torch.no_grad():
                    value.add_(0.2 * torch.randn_like(value))
                    value.copy_(value.to(torch.bfloat16).to(torch.float32))
                w[name + "." + key] = value

    def logits(self, source, target):
        def embed(table, ids):
            width = table.shape[1]
            rate = torch.tensor(10000.0) ** (-(torch.arange(0, width, 2)) / width)
            angle = torch.arange(len(ids))[:, None] * rate
            places = torch.stack([angle.sin(), angle.cos()], 2).reshape(len(ids), width)
            return (table[ids] * math.sqrt(width) + places)[None]

        w = self.w
        memory = self.encoder(embed(w.get("source_embedding", w["target_embedding"]), source))
        causal = torch.ones(len(target), len(target), dtype=torch.bool).triu(1)
        hidden = self.decoder(embed(w["target_embedding"], target), memory, tgt_mask=causal)[0]
        return hidden @ w.get("output", w["target_embedding"]).T


def loss_of(model):
    logits = torch.cat([model.logits(s + [END], [BEGIN] + t) for s, t in SENTENCES])
    wanted = torch.tensor(sum((t + [END] for _, t in SENTENCES), []))
    return F.cross_entropy(logits, wanted, label_smoothing=0.1)


def store(tensors, name, model, loss_of):
    """The model's weights, its first gradients, and its losses over ten steps."""
    for key, value in model.w.items():
        tensors[f"{name}/weight/{key}"] = value.detach().clone()
    losses = []
    optimizer = torch.optim.Adam(model.w.values(), lr=0.01)
    for step in range(10):
        optimizer.zero_grad()
        loss = loss_of(model)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            for key, value in model.w.items():
                tensors[f"{name}/grad/{key}"] = value.grad.clone()
        optimizer.step()
    tensors[f"{name}/losses"] = torch.tensor(losses)


def main():
    torch.manual_seed(3)
    tensors, cases = {}, []

    def add(model, settings, made):
        name = str(len(cases))
        store(tensors, name, made, loss_of)
        cases.append({"model": model, "settings": settings})

    sizes = {"embedding": EMBEDDING, "width": WIDTH, "dropout": 0.0}
    for index, score in enumerate(["additive", "dot", "scaled_dot", "cosine(0.5)", "bilinear", "concat", "location"]):
        settings = {**sizes, "score": score, "output": "linear" if index % 2 else "maxout"}
        settings["tie"] = ["none", "output", "all"][index % 3]
        add("bahdanau", settings, Bahdanau(settings, True))
    for output in ("maxout", "linear"):
        settings = {**sizes, "output": output}
        add("rnn", settings, Bahdanau(settings, False))
    index = 0
    for score in ["dot", "general", "concat", "location", "additive", "scaled_dot", "cosine(0.5)"]:
        for locality in ["global", "local_m", "local_p"]:
            index += 1
            settings = {
                **sizes,
                "score": score,
                "locality": locality,
                "window": 2,
                "layers": 1 + index % 2,
                "input_feeding": index % 4 < 2,
                "bidirectional": index % 3 == 0,
            }
            add("luong", settings, Luong(settings))
    for tie, first in (("all", False), ("none", True)):
        settings = {"width": 8, "heads": 2, "hidden": 12, "encoder_layers": 2, "decoder_layers": 2}
        settings.update({"dropout": 0.0, "tie": tie, "norm_first": first})
        add("transformer", settings, Transformer(settings))
    save("translation.safetensors", tensors)
    batch = {"vocabulary": VOCABULARY, "sentences": [list(pair) for pair in SENTENCES]}
    with open("translation.json", "w") as file:
        json.dump({"batch": batch, "cases": cases}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
