"""Golden values of Show, Attend and Tell: weights, loss, gradients, the losses of ten steps of Adam, and where it looked.

Run with PyTorch 2.13 from this folder: python make_show_attend_tell.py
"""

import torch
import torch.nn.functional as F
from torch import nn

from safetensors_file import save

VOCABULARY, CHANNELS, PLACES, EMBEDDING, WIDTH, HIDDEN, STEPS = 13, 6, 5, 4, 7, 3, 10
LENGTHS = [5, 3, 3, 2]
BEGIN, END = 1, 2


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.W = nn.Parameter(torch.randn(HIDDEN, CHANNELS) * 0.5)
        self.U = nn.Parameter(torch.randn(HIDDEN, WIDTH) * 0.5)
        self.b = nn.Parameter(torch.randn(HIDDEN) * 0.1)
        self.v = nn.Parameter(torch.randn(HIDDEN))

    def forward(self, features, h):
        scores = torch.tanh(features @ self.W.T + (h @ self.U.T + self.b)[:, None]) @ self.v
        return torch.softmax(scores, 1)


class InputWeights(nn.Module):
    def __init__(self, rows, embedding):
        super().__init__()
        if embedding:
            self.embedding = nn.Parameter(torch.randn(rows, EMBEDDING) * 0.4)
        self.context = nn.Parameter(torch.randn(rows, CHANNELS) * 0.4)
        self.state = nn.Parameter(torch.randn(rows, WIDTH) * 0.4)
        self.bias = nn.Parameter(torch.randn(rows) * 0.1)


class ShowAttendTell(nn.Module):
    def __init__(self, gate):
        super().__init__()
        self.embedding = nn.Parameter(torch.randn(VOCABULARY, EMBEDDING) * 0.5)
        self.output = nn.Parameter(torch.randn(VOCABULARY, EMBEDDING) * 0.5)
        self.output_bias = nn.Parameter(torch.randn(VOCABULARY) * 0.1)
        self.first_h, self.first_c = nn.Linear(CHANNELS, WIDTH), nn.Linear(CHANNELS, WIDTH)
        self.attention = Attention()
        if gate:
            self.gate = nn.Linear(WIDTH, 1)
        self.decoder, self.readout = InputWeights(4 * WIDTH, True), InputWeights(EMBEDDING, False)

    def caption(self, features, words):
        """features: [places, channels]; words: as they are fed -> logits, weights, gates."""
        mean = features.mean(0, keepdim=True)
        h, c = torch.tanh(self.first_h(mean)), torch.tanh(self.first_c(mean))
        logits, weights, gates = [], [], []
        for word in words:
            embedded = self.embedding[word][None]
            alpha = self.attention(features[None], h)
            beta = torch.sigmoid(self.gate(h)) if hasattr(self, "gate") else torch.ones(1, 1)
            z = beta * (alpha @ features)
            d = self.decoder
            i, f, g, o = (embedded @ d.embedding.T + z @ d.context.T + h @ d.state.T + d.bias).chunk(4, 1)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            r = self.readout
            read = torch.tanh(embedded + h @ r.state.T + z @ r.context.T + r.bias)
            logits.append(read @ self.output.T + self.output_bias)
            weights.append(alpha)
            gates.append(beta)
        return torch.cat(logits), torch.cat(weights), torch.cat(gates)[:, 0]


def make(tensors, name, gate, penalty, smoothing):
    network = ShowAttendTell(gate)
    features = torch.rand(len(LENGTHS), PLACES, CHANNELS) * 3
    captions = [torch.randint(4, VOCABULARY, (length - 1,)) for length in LENGTHS]
    with torch.no_grad():
        for parameter in list(network.parameters()) + [features]:
            parameter.copy_(parameter.to(torch.bfloat16).to(torch.float32))
    fed = [torch.cat([torch.tensor([BEGIN]), words]) for words in captions]
    wanted = torch.cat([torch.cat([words, torch.tensor([END])]) for words in captions])
    tensors |= {f"{name}.features": features, f"{name}.in": torch.cat(fed).float(), f"{name}.out": wanted.float()}
    for parameter_name, parameter in network.named_parameters():
        tensors[f"{name}.weight.{parameter_name}"] = parameter.detach().clone()
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    losses = []
    for step in range(STEPS):
        optimiser.zero_grad()
        seen = [network.caption(features[i], words) for i, words in enumerate(fed)]
        loss = F.cross_entropy(torch.cat([logits for logits, _, _ in seen]), wanted, label_smoothing=smoothing)
        loss = loss + penalty * sum(((1 - weights.sum(0)) ** 2).sum() for _, weights, _ in seen) / len(wanted)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            for parameter_name, parameter in network.named_parameters():
                tensors[f"{name}.grad.{parameter_name}"] = parameter.grad.clone()
            tensors[f"{name}.alpha"] = torch.cat([weights for _, weights, _ in seen]).detach()
            tensors[f"{name}.beta"] = torch.cat([gates for _, _, gates in seen]).detach()
        optimiser.step()
    tensors[f"{name}.losses"] = torch.tensor(losses)


torch.manual_seed(3)
tensors = {}
make(tensors, "gated", True, 1.0, 0.1)
make(tensors, "plain", False, 0.0, 0.0)
save("show_attend_tell.safetensors", tensors)
