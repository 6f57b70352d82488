"""PyTorch's side of training Bahdanau's model: the same layers, sizes, dropout, loss and optimiser as Fovea's.

What can be said once for all steps is said once: the encoder is one nn.GRU, keys are projected once, tokens'
part of the gates, the readout and the output layer are made for all steps together. A step is the query, the
looking and a GRU cell. The variants differ in where the context meets the gates, and in torch.compile.
"""

import torch
import torch.nn.functional as F
from torch import nn

VOCABULARY, SPECIALS, EMBEDDING, WIDTH, DROPOUT = 10000, 4, 512, 512, 0.2
SENTENCES, SHORTEST, LONGEST = 64, 10, 20


def lengths(of):
    return torch.tensor([SHORTEST + of(i) % (LONGEST - SHORTEST + 1) for i in range(SENTENCES)])


def padded(sizes, ignored=0):
    """Tokens of sentences of these sizes, [sentences, longest]."""
    ids = torch.randint(SPECIALS, VOCABULARY, (len(sizes), int(sizes.max())))
    return ids.masked_fill(torch.arange(ids.shape[1])[None] >= sizes[:, None], ignored)


class Bahdanau(nn.Module):
    def __init__(self, early):
        super().__init__()
        self.early = early  # the context's part of gates and readout is made of the annotations, once
        self.source, self.target = nn.Embedding(VOCABULARY, EMBEDDING), nn.Embedding(VOCABULARY, EMBEDDING)
        self.encoder = nn.GRU(EMBEDDING, WIDTH, batch_first=True, bidirectional=True)
        self.bridge = nn.Linear(WIDTH, WIDTH)
        self.key, self.query = nn.Linear(2 * WIDTH, WIDTH, bias=False), nn.Linear(WIDTH, WIDTH)
        self.score = nn.Parameter(torch.randn(WIDTH) / WIDTH**0.5)
        self.from_token = nn.Linear(EMBEDDING, 3 * WIDTH + 2 * EMBEDDING)
        self.from_context = nn.Linear(2 * WIDTH, 3 * WIDTH + 2 * EMBEDDING, bias=False)
        self.from_state = nn.Linear(WIDTH, 3 * WIDTH)
        self.read_state = nn.Linear(WIDTH, 2 * EMBEDDING, bias=False)
        self.output = nn.Linear(EMBEDDING, VOCABULARY)

    def look(self, s, keys, values, hidden):
        scores = torch.tanh(keys + self.query(s)[:, None]) @ self.score
        weights = scores.masked_fill(hidden, -torch.inf).softmax(1)
        return torch.bmm(weights[:, None], values)[:, 0]

    def forward(self, source, sizes, target, wanted):
        drop = lambda x: F.dropout(x, DROPOUT, True)
        read = nn.utils.rnn.pack_padded_sequence(
            drop(self.source(source)), sizes, batch_first=True, enforce_sorted=False
        )
        read, last = self.encoder(read)
        memory = drop(nn.utils.rnn.pad_packed_sequence(read, batch_first=True)[0])
        hidden = torch.arange(memory.shape[1])[None] >= sizes[:, None]
        s, keys = torch.tanh(self.bridge(last[1])), self.key(memory)
        values = self.from_context(memory) if self.early else memory
        embedded = drop(self.target(target))
        products, token_read = self.from_token(embedded).split([3 * WIDTH, 2 * EMBEDDING], 2)
        states, contexts = [], []
        for step in products.unbind(1):
            seen = self.look(s, keys, values, hidden)
            part = seen if self.early else F.linear(seen, self.from_context.weight[: 3 * WIDTH])
            contexts.append(seen[:, 3 * WIDTH :] if self.early else seen)
            r, z, n = (step + part[:, : 3 * WIDTH]).chunk(3, 1)
            hr, hz, hn = self.from_state(s).chunk(3, 1)
            z = torch.sigmoid(z + hz)
            s = torch.lerp(torch.tanh(n + torch.sigmoid(r + hr) * hn), s, z)
            states.append(s)
        context = torch.stack(contexts, 1)
        if not self.early:
            context = F.linear(context, self.from_context.weight[3 * WIDTH :])
        t = self.read_state(torch.stack(states, 1)) + token_read + context
        t = drop(t.unflatten(2, (2, EMBEDDING)).amax(2))
        counted = wanted.flatten() >= 0  # the output layer alone need not see padding
        return F.cross_entropy(self.output(t.flatten(0, 1)[counted]), wanted.flatten()[counted], label_smoothing=0.1)


def training():
    def build(early, wrap):
        sizes, steps = lengths(lambda i: i), lengths(lambda i: 7 * i + 3)
        source, target, wanted = padded(sizes), padded(steps), padded(steps, ignored=-100)
        model = Bahdanau(early)
        model.look = wrap(model.look)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)

        def step():
            optimizer.zero_grad(set_to_none=True)
            model(source, sizes, target, wanted).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

        return step

    return {
        "context into the gates": lambda: build(False, lambda f: f),
        "context projected early": lambda: build(True, lambda f: f),
        "context projected early, compiled look": lambda: build(True, torch.compile),
    }


if __name__ == "__main__":
    import sys
    import time

    torch.set_num_threads(int(sys.argv[1]) if len(sys.argv) > 1 else 1)
    tokens = int(lengths(lambda i: 7 * i + 3).sum())
    for name, make in training().items():
        run = make()
        run()
        best = float("inf")
        for _ in range(5):
            begin = time.perf_counter()
            run()
            best = min(best, time.perf_counter() - begin)
        print(f"{name}: {best * 1e3:.0f} ms a step, {tokens / best:.0f} target tokens/s")
