"""Golden values of attention over the frames of clips (every pooling, forward and gradients) and of the clip classifier:
weights, loss, gradients, the losses of ten steps of Adam, logits and weights of the frames.

Frames are kept channels last. Run with PyTorch 2.13 from this folder: python make_clip.py
"""

import torch
import torch.nn.functional as F
from torch import nn

from make_gates import rounded
from safetensors_file import save

CLASSES, FILTERS, FEATURES, HIDDEN, STEPS = 3, 4, 12, 7, 10


class Pooling(nn.Module):
    """x: [frames, d], clips of `lengths` one after the other."""

    def __init__(self, kind, width, hidden):
        super().__init__()
        self.kind = kind
        if kind == "dot":
            self.query = nn.Parameter(rounded(width))
        if kind in ("additive", "gated"):
            self.query, self.v = nn.Parameter(rounded(hidden)), nn.Linear(width, hidden)
        if kind == "gated":
            self.u = nn.Linear(width, hidden)

    def scores(self, x):
        if self.kind == "mean":
            return torch.zeros(len(x))
        if self.kind == "dot":
            return x @ self.query / x.shape[1]**0.5
        keys = torch.tanh(self.v(x))
        return (keys * torch.sigmoid(self.u(x)) if self.kind == "gated" else keys) @ self.query

    def forward(self, x, lengths):
        out, all_weights = [], []
        for clip in x.split(lengths):
            if self.kind == "max":
                out.append(clip.amax(0))
                continue
            weights = self.scores(clip).softmax(0)
            out.append(weights @ clip)
            all_weights.append(weights)
        return torch.stack(out), torch.cat(all_weights) if all_weights else torch.zeros(0)


class Clip(nn.Module):
    def __init__(self, kind, channels, height, width):
        super().__init__()
        second = FILTERS * 5 // 2
        self.conv1, self.conv2 = nn.Conv2d(channels, FILTERS, 5), nn.Conv2d(FILTERS, second, 5)
        places = [((side - 4) // 2 - 4) // 2 for side in (height, width)]
        self.fc = nn.Linear(places[0] * places[1] * second, FEATURES)
        self.pooling = Pooling(kind, FEATURES, HIDDEN)
        self.output = nn.Linear(FEATURES, CLASSES)

    def forward(self, frames, lengths):
        low = F.max_pool2d(torch.relu(self.conv1(frames)), 2)
        high = F.max_pool2d(torch.relu(self.conv2(low)), 2)
        features = torch.relu(self.fc(high.permute(0, 2, 3, 1).flatten(1)))  # channels last, as they are stored
        pooled, weights = self.pooling(features, lengths)
        return self.output(pooled), weights


def round_weights(module):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(parameter.to(torch.bfloat16).to(torch.float32))


def make_pooling(tensors, kind):
    layer, lengths, x = Pooling(kind, 6, 5), [3, 1, 4], rounded(8, 6).requires_grad_()
    round_weights(layer)
    y, weights = layer(x, lengths)
    grad = rounded(*y.shape)
    y.backward(grad)
    name = f"pool_{kind}"
    tensors |= {f"{name}.x": x, f"{name}.y": y, f"{name}.y_grad": grad, f"{name}.dx": x.grad, f"{name}.weights": weights}
    for key, value in layer.named_parameters():
        tensors |= {f"{name}.weight.{key}": value.detach().clone(), f"{name}.grad.{key}": value.grad}


def make_clip(tensors, kind, channels, height, width):
    name, lengths, labels = f"clip_{kind}", [2, 5, 1], torch.tensor([0, 2, 1])
    network, frames = Clip(kind, channels, height, width), rounded(8, channels, height, width)
    round_weights(network)
    tensors |= {f"{name}.frames": frames.permute(0, 2, 3, 1)}
    tensors |= {f"{name}.weight.{key}": p.detach().clone() for key, p in network.named_parameters()}
    optimiser = torch.optim.Adam(network.parameters(), lr=0.003)
    losses = []
    for step in range(STEPS):
        optimiser.zero_grad()
        loss = F.cross_entropy(network(frames, lengths)[0], labels)
        loss.backward()
        if step == 0:
            tensors |= {f"{name}.grad.{key}": p.grad.clone() for key, p in network.named_parameters()}
        optimiser.step()
        losses.append(loss.detach())
    logits, weights = network(frames, lengths)
    tensors |= {f"{name}.losses": torch.stack(losses), f"{name}.logits": logits, f"{name}.weights": weights}


if __name__ == "__main__":
    torch.manual_seed(15)
    tensors = {}
    for kind in ("dot", "additive", "gated", "mean", "max"):
        make_pooling(tensors, kind)
    make_clip(tensors, "gated", 1, 16, 18)
    make_clip(tensors, "max", 2, 17, 16)
    save("clip.safetensors", tensors)
