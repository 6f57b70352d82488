"""PyTorch's side: for each case, its variants; a variant builds its tensors and returns one step to time."""

import math

import torch
import torch.nn.functional as F

import torch_caption


def leaf(*shape):
    return torch.randn(*shape).requires_grad_()


def forward_and_back(leaves, forward):
    """A step that drops gradients, computes, and goes back from a fixed gradient of the result."""
    with torch.no_grad():
        seed = torch.randn_like(forward())

    def step():
        for x in leaves:
            x.grad = None
        forward().backward(seed)

    return step


def linear():
    def eager():
        x, weight, bias = leaf(4096, 512), leaf(2048, 512), leaf(2048)
        return forward_and_back([x, weight, bias], lambda: F.linear(x, weight, bias))

    return {"eager": eager}


def layer_norm():
    def eager():
        x, weight, bias = leaf(4096, 512), leaf(512), leaf(512)
        return forward_and_back([x, weight, bias], lambda: F.layer_norm(x, (512,), weight, bias))

    return {"eager": eager}


def residual_dropout_norm():
    def build(wrap):
        x, residual, weight, bias = leaf(4096, 512), leaf(4096, 512), leaf(512), leaf(512)
        op = wrap(lambda x, r, w, b: F.layer_norm(r + F.dropout(x, 0.1, True), (512,), w, b))
        return forward_and_back([x, residual, weight, bias], lambda: op(x, residual, weight, bias))

    return {"eager": lambda: build(lambda f: f), "compiled": lambda: build(torch.compile)}


def cross_entropy():
    def build(wrap):
        logits, targets = leaf(4096, 10000), torch.randint(10000, (4096,))
        op = wrap(lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1))

        def step():
            logits.grad = None
            op(logits, targets).backward()

        return step

    return {"eager": lambda: build(lambda f: f), "compiled": lambda: build(torch.compile)}


def convolution(images, size, channels, filters, stride=1, groups=1):
    def build(order):
        x = torch.randn(images, channels, size, size).to(memory_format=order).requires_grad_()
        weight = torch.randn(filters, channels // groups, 3, 3).to(memory_format=order).requires_grad_()
        bias = leaf(filters)
        return forward_and_back([x, weight, bias], lambda: F.conv2d(x, weight, bias, stride, 1, 1, groups))

    return lambda: {"channels last": lambda: build(torch.channels_last),
                    "channels first": lambda: build(torch.contiguous_format)}


def orders(build):
    """The same in both memory formats."""
    return lambda: {"channels last": lambda: build(torch.channels_last),
                    "channels first": lambda: build(torch.contiguous_format)}


def mobilenet(images, size, channels):
    def build(order):
        x = torch.randn(images, channels, size, size).to(memory_format=order).requires_grad_()
        deep, point = leaf(channels, 1, 3, 3), leaf(channels, channels, 1, 1)
        return forward_and_back([x, deep, point],
                                lambda: F.conv2d(F.conv2d(x, deep, padding=1, groups=channels), point))

    return orders(build)


class SqueezeExcite(torch.nn.Module):
    def __init__(self, channels, reduction):
        super().__init__()
        self.fc1 = torch.nn.Linear(channels, channels // reduction)
        self.fc2 = torch.nn.Linear(channels // reduction, channels)

    def squeeze(self, pooled):
        return self.fc2(torch.relu(self.fc1(pooled)))

    def forward(self, x):
        return x * torch.sigmoid(self.squeeze(x.mean((2, 3))))[:, :, None, None]


class Cbam(SqueezeExcite):
    def __init__(self, channels, reduction):
        super().__init__(channels, reduction)
        self.conv = torch.nn.Conv2d(2, 1, 7, padding=3, bias=False)

    def forward(self, x):
        x = x * torch.sigmoid(self.squeeze(x.mean((2, 3))) + self.squeeze(x.amax((2, 3))))[:, :, None, None]
        places = torch.cat([x.mean(1, keepdim=True), x.amax(1, keepdim=True)], 1)
        return x * torch.sigmoid(self.conv(places))


def gate(kind):
    def build(order, wrap):
        layer = kind(64, 16).to(memory_format=order)
        x = torch.randn(32, 64, 56, 56).to(memory_format=order).requires_grad_()
        run = wrap(layer)
        return forward_and_back([x, *layer.parameters()], lambda: run(x))

    return lambda: {"channels last": lambda: build(torch.channels_last, lambda f: f),
                    "channels first": lambda: build(torch.contiguous_format, lambda f: f),
                    "compiled": lambda: build(torch.channels_last, torch.compile)}


class ResidualBlock(torch.nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        nn = torch.nn
        self.body = nn.Sequential(nn.Conv2d(channels, filters, 3, stride, 1, bias=False), nn.BatchNorm2d(filters), nn.ReLU(),
                                  nn.Conv2d(filters, filters, 3, 1, 1, bias=False), nn.BatchNorm2d(filters))
        same = stride == 1 and channels == filters
        self.shortcut = nn.Identity() if same else nn.Sequential(nn.Conv2d(channels, filters, 1, stride, bias=False),
                                                                 nn.BatchNorm2d(filters))

    def forward(self, x):
        return torch.relu(self.body(x) + self.shortcut(x))


class ResNet20(torch.nn.Module):
    def __init__(self):
        super().__init__()
        nn = torch.nn
        layers, channels = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()], 16
        for stage in range(3):
            for block in range(3):
                layers.append(ResidualBlock(channels, 16 << stage, 2 if stage > 0 and block == 0 else 1))
                channels = 16 << stage
        self.body, self.output = nn.Sequential(*layers), nn.Linear(64, 10)

    def forward(self, x):
        return self.output(self.body(x).mean((2, 3)))


def resnet20_step():
    def build(order, wrap):
        network = ResNet20().to(memory_format=order)
        optimizer = torch.optim.SGD(network.parameters(), lr=0.01, momentum=0.9)
        x, labels = torch.randn(64, 3, 32, 32).to(memory_format=order), torch.arange(64) % 10
        run = wrap(network)

        def step():
            optimizer.zero_grad()
            F.cross_entropy(run(x), labels).backward()
            optimizer.step()

        return step

    return {"channels last": lambda: build(torch.channels_last, lambda f: f),
            "channels first": lambda: build(torch.contiguous_format, lambda f: f),
            "compiled": lambda: build(torch.channels_last, torch.compile)}


def recurrent(kind, batch, steps, width):
    def eager():
        layer, x = kind(width, width), leaf(steps, batch, width)
        return forward_and_back([x, *layer.parameters()], lambda: layer(x)[0])

    return lambda: {"eager": eager}


def lstm_ragged():
    lengths = torch.linspace(10, 200, 64).round().long().flip(0)

    def padded():
        layer, x = torch.nn.LSTM(128, 128, bidirectional=True), leaf(200, 64, 128)
        return forward_and_back([x, *layer.parameters()], lambda: layer(x)[0])

    def packed():
        layer, x = torch.nn.LSTM(128, 128, bidirectional=True), leaf(200, 64, 128)

        def forward():
            out, _ = layer(torch.nn.utils.rnn.pack_padded_sequence(x, lengths))
            return torch.nn.utils.rnn.pad_packed_sequence(out)[0]

        return forward_and_back([x, *layer.parameters()], forward)

    return {"padded": padded, "packed": packed}


def embedding():
    table, ids = leaf(10000, 512), torch.randint(10000, (4096,))

    def dense():
        return forward_and_back([table], lambda: F.embedding(ids, table))

    # Rows that share an id are summed, as Fovea's gradient has them and an optimiser needs them.
    def sparse():
        step = torch.ones(4096, 512)

        def run():
            table.grad = None
            F.embedding(ids, table, sparse=True).backward(step)
            table.grad = table.grad.coalesce()

        return run

    return {"dense gradient": dense, "coalesced sparse gradient": sparse}


def adam_step():
    def build(**options):
        weights = [leaf(326, 512) for _ in range(60)]
        for weight in weights:
            weight.grad = torch.randn_like(weight)
        optimizer = torch.optim.Adam(weights, **options)
        return lambda: optimizer.step()

    return {
        "default": lambda: build(),
        "foreach": lambda: build(foreach=True),
        "fused": lambda: build(fused=True),
    }


def ram_training():
    import torch_ram

    return torch_ram.training()


def bert_pretraining():
    import torch_bert

    return torch_bert.pretraining()


OPS = {
    "linear": linear,
    "layer_norm": layer_norm,
    "residual_dropout_norm": residual_dropout_norm,
    "cross_entropy": cross_entropy,
    "gru_512": recurrent(torch.nn.GRU, 64, 32, 512),
    "lstm_512": recurrent(torch.nn.LSTM, 64, 32, 512),
    "gru_128": recurrent(torch.nn.GRU, 16, 32, 128),
    "lstm_128": recurrent(torch.nn.LSTM, 16, 32, 128),
    "lstm_ragged": lstm_ragged,
    "conv_16": convolution(64, 32, 16, 16),
    "conv_64": convolution(64, 8, 64, 64),
    "conv_wide_64": convolution(64, 32, 64, 64),
    "conv_stride": convolution(64, 32, 16, 32, stride=2),
    "conv_depthwise": convolution(16, 28, 64, 64, groups=64),
    "mobilenet_56": mobilenet(16, 56, 128),
    "mobilenet_14": mobilenet(16, 14, 512),
    "se_block": gate(SqueezeExcite),
    "cbam_block": gate(Cbam),
    "resnet20_step": resnet20_step,
    "embedding": embedding,
    "sat_decoder": torch_caption.sat_decoder,
    "mobilenet_features": torch_caption.mobilenet_features,
    "adam_step": adam_step,
    "ram_training": ram_training,
    "bert_pretraining": bert_pretraining,
}


def longformer(i, j):
    return ((i - j).abs() <= 256) | (i == 0) | (j == 0)


def bigbird(i, j, block=64, drawn=3):
    """Neighbouring blocks, `drawn` random ones and two global ones; which ones are drawn does not matter for time."""
    blocks = (int(i.max()) + block) // block
    choice = torch.zeros(blocks, blocks, dtype=torch.bool)
    choice.scatter_(1, torch.rand(blocks, blocks).argsort(1)[:, :drawn], True)
    bi, bj = i // block, j // block
    return ((bi - bj).abs() <= 1) | (bi < 2) | (bj < 2) | choice[bi, bj]


def attention(batch, heads, n, d, kv_heads=None, nk=None, causal=False, window=None, keep=None, dropout=0.0,
              bias=False, alibi=False, backward=False, flex=False, masked=True):
    """Scaled-dot attention: SDPA (unless its N x N mask does not fit: masked=False), and eager where N x N is small."""
    kv_heads, nk = kv_heads or heads, nk or n

    def inputs():
        make = leaf if backward else torch.randn
        return make(batch, heads, n, d), make(batch, kv_heads, nk, d), make(batch, kv_heads, nk, d)

    def mask():
        if window is None and keep is None and not bias and not alibi:
            return None
        if keep is not None:
            return keep(torch.arange(n)[:, None], torch.arange(nk)[None, :])[None, None]
        distance = torch.arange(n)[:, None] - torch.arange(nk)[None, :]
        if window is not None:
            return (distance.abs() <= window)[None, None]
        if alibi:
            slopes = 2.0 ** (-8.0 * torch.arange(1, heads + 1) / heads)
            return -slopes[None, :, None, None] * distance.abs()
        return leaf(1, heads, n, nk) if backward else torch.randn(1, heads, n, nk)

    def step_of(op, q, k, v, m):
        if not backward:
            def step():
                with torch.no_grad():
                    op(q, k, v, m)
            return step
        leaves = [x for x in (q, k, v, m) if x is not None and x.requires_grad]
        return forward_and_back(leaves, lambda: op(q, k, v, m))

    def sdpa():
        op = lambda q, k, v, m: F.scaled_dot_product_attention(
            q, k, v, attn_mask=m, dropout_p=dropout, is_causal=causal, enable_gqa=kv_heads != heads)
        return step_of(op, *inputs(), mask())

    def eager():
        def op(q, k, v, m):
            if kv_heads != heads:
                k, v = (x.repeat_interleave(heads // kv_heads, 1) for x in (k, v))
            scores = q @ k.transpose(-1, -2) * (1 / math.sqrt(d))
            if causal:
                scores = scores.masked_fill(torch.ones(n, nk, dtype=torch.bool).triu(1), -math.inf)
            if m is not None:
                scores = scores.masked_fill(~m, -math.inf) if m.dtype == torch.bool else scores + m
            return F.dropout(scores.softmax(-1), dropout, dropout > 0) @ v
        return step_of(op, *inputs(), mask())

    def flex_compiled():
        from torch.nn.attention.flex_attention import create_block_mask, flex_attention
        keep = (lambda b, h, i, j: i >= j) if causal else (lambda b, h, i, j: (i - j).abs() <= window)
        blocks = create_block_mask(keep, None, None, n, nk, device="cpu")
        compiled = torch.compile(flex_attention)
        return step_of(lambda q, k, v, m: compiled(q, k, v, block_mask=blocks), *inputs(), None)

    variants = {"SDPA": sdpa} if masked else {}
    if batch * heads * n * nk <= 1 << 26:
        variants["eager"] = eager
    if flex and not backward:
        variants["FlexAttention"] = flex_compiled
    return variants


def additive(batch, nq, nk, hidden, backward, projected=False):
    """Bahdanau's score, eager: the only way PyTorch has. Projected: the keys come multiplied by W."""
    def eager():
        make = leaf if backward else torch.randn
        q, k, v = make(batch, nq, hidden), make(batch, nk, hidden), make(batch, nk, hidden)
        w, u, b, s = make(hidden, hidden), make(hidden, hidden), make(hidden), make(hidden)

        def forward():
            scores = torch.tanh((k if projected else k @ w)[:, None] + (q @ u)[:, :, None] + b) @ s
            return scores.softmax(-1) @ v

        if backward:
            return forward_and_back([q, k, v, w, u, b, s], forward)

        def step():
            with torch.no_grad():
                forward()

        return step

    return {"eager": eager}
