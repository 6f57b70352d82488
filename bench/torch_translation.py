"""PyTorch's side of training a Transformer: the same layers, sizes, dropout, loss and optimiser as Fovea's."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from translation import SPECIALS, VOCABULARY, WORK


class Sentences:
    """Tokens of a batch: packed one after the other, and where they stand in a padded matrix."""

    def __init__(self, lengths):
        self.lengths = torch.tensor(lengths)
        self.count, self.longest = len(lengths), max(lengths)
        self.mask = torch.arange(self.longest)[None] < self.lengths[:, None]
        self.places = self.mask.flatten().nonzero().squeeze(1)
        self.positions = torch.cat([torch.arange(n) for n in lengths])
        self.ids = torch.randint(SPECIALS, VOCABULARY, (int(self.lengths.sum()),))

    def pad(self, x):
        padded = x.new_zeros(self.count * self.longest, *x.shape[1:])
        return padded.index_copy(0, self.places, x).view(self.count, self.longest, *x.shape[1:])

    def pack(self, x):
        return x.flatten(0, 1).index_select(0, self.places)


def sinusoid(longest, width):
    angles = torch.arange(longest)[:, None] * torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def project(self, x, memory):
        if memory is None:
            return self.qkv(x).chunk(3, -1)
        width = x.shape[-1]
        weight, bias = self.qkv.weight, self.qkv.bias
        q = F.linear(x, weight[:width], bias[:width])
        return q, *F.linear(memory, weight[width:], bias[width:]).chunk(2, -1)

    def forward(self, x, memory, own, other, packed, **mask):
        """own, other: the Sentences of queries and keys; packed: x and memory hold no padding."""
        q, k, v = self.project(x, memory)
        if packed:
            q, k, v = own.pad(q), other.pad(k), other.pad(v)
        seen = F.scaled_dot_product_attention(self.split(q), self.split(k), self.split(v), **mask)
        seen = seen.transpose(1, 2).flatten(2)
        return self.out(own.pack(seen) if packed else seen)


class Layer(nn.Module):
    def __init__(self, work, cross):
        super().__init__()
        self.attention = Attention(work.width, work.heads)
        self.cross = Attention(work.width, work.heads) if cross else None
        self.first, self.second = nn.Linear(work.width, work.hidden), nn.Linear(work.hidden, work.width)
        self.norms = nn.ModuleList(nn.LayerNorm(work.width) for _ in range(3 if cross else 2))
        self.rate = work.dropout

    def add(self, x, branch, norm):
        return self.norms[norm](x + F.dropout(branch, self.rate, True))

    def forward(self, x, own, packed, mask, memory=None, other=None):
        """mask: of the sources' padding, whoever looks at them."""
        seen = {"is_causal": True} if self.cross else {"attn_mask": mask}
        x = self.add(x, self.attention(x, None, own, own, packed, **seen), 0)
        if self.cross:
            x = self.add(x, self.cross(x, memory, own, other, packed, attn_mask=mask), 1)
        hidden = F.dropout(F.relu(self.first(x)), self.rate, True)
        return self.add(x, self.second(hidden), -1)


class Transformer(nn.Module):
    def __init__(self, work):
        super().__init__()
        self.work = work
        self.table = nn.Parameter(torch.randn(VOCABULARY, work.width) / math.sqrt(work.width))
        self.encoder = nn.ModuleList(Layer(work, False) for _ in range(work.layers))
        self.decoder = nn.ModuleList(Layer(work, True) for _ in range(work.layers))
        self.register_buffer("places", sinusoid(work.longest + 1, work.width))

    def embed(self, sentences, packed):
        x = F.embedding(sentences.ids, self.table) * math.sqrt(self.work.width) + self.places[sentences.positions]
        return F.dropout(x if packed else sentences.pad(x), self.work.dropout, True)

    def forward(self, source, target, wanted, packed):
        # Padding stands at the end: causal targets never see it, sources are masked.
        mask = source.mask[:, None, None]
        x = self.embed(source, packed)
        for layer in self.encoder:
            x = layer(x, source, packed, mask)
        y = self.embed(target, packed)
        for layer in self.decoder:
            y = layer(y, target, packed, mask, x, source)
        y = y if packed else y.flatten(0, 1)
        return F.cross_entropy(F.linear(y, self.table), wanted, ignore_index=-100, label_smoothing=0.1)


def training(preset):
    work = WORK[preset]

    def build(packed, wrap):
        source = Sentences([work.source_length(i) for i in range(work.sentences)])
        target = Sentences([work.target_length(i) for i in range(work.sentences)])
        ids = torch.randint(SPECIALS, VOCABULARY, target.ids.shape)
        padded = torch.full((target.count * target.longest,), -100).index_copy(0, target.places, ids)
        model = Transformer(work)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98), eps=1e-9, fused=True)
        loss = wrap(lambda: model(source, target, ids if packed else padded, packed))

        def step():
            optimizer.zero_grad(set_to_none=True)
            loss().backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

        return step

    return {
        "padded": lambda: build(False, lambda f: f),
        "packed": lambda: build(True, lambda f: f),
        "padded, compiled": lambda: build(False, torch.compile),
        "packed, compiled": lambda: build(True, torch.compile),
    }
