"""Golden values of the image classifiers: the residual network with every gate, and the vision Transformer. Weights,
loss, gradients, the losses of ten steps of Adam.

Images are kept channels last. Run with PyTorch 2.13 from this folder: python make_image_classifier.py
"""

import torch
import torch.nn.functional as F
from torch import nn

from make_gates import Cbam, SelectiveKernel, SqueezeExcite, rounded
from safetensors_file import save

CLASSES, WIDTH, REDUCTION, STEPS = 5, 4, 2, 10


def conv3(channels, filters, stride):
    return nn.Conv2d(channels, filters, 3, stride, 1, bias=False)


class Shortcut(nn.Module):
    def __init__(self, channels, filters, stride):
        super().__init__()
        self.conv, self.norm = nn.Conv2d(channels, filters, 1, stride, bias=False), nn.BatchNorm2d(filters)

    def forward(self, x):
        return self.norm(self.conv(x))


class Block(nn.Module):
    def __init__(self, gate, channels, filters, stride):
        super().__init__()
        self.conv1, self.norm1 = conv3(channels, filters, stride), nn.BatchNorm2d(filters)
        if gate == "sk":
            self.sk = SelectiveKernel(filters, filters, 1, 1, 2, max(filters // REDUCTION, 32))
        else:
            self.conv2, self.norm2 = conv3(filters, filters, 1), nn.BatchNorm2d(filters)
        if gate in ("se", "cbam"):
            self.gate = (SqueezeExcite if gate == "se" else Cbam)(filters, REDUCTION)
        if stride != 1 or channels != filters:
            self.shortcut = Shortcut(channels, filters, stride)

    def forward(self, x):
        y = torch.relu(self.norm1(self.conv1(x)))
        y = self.sk(y) if hasattr(self, "sk") else self.norm2(self.conv2(y))
        if hasattr(self, "gate"):
            y = self.gate(y)
        return torch.relu(y + (self.shortcut(x) if hasattr(self, "shortcut") else x))


class Network(nn.Module):
    def __init__(self, gate, channels):
        super().__init__()
        self.conv, self.norm = conv3(channels, WIDTH, 1), nn.BatchNorm2d(WIDTH)
        widths = [WIDTH, WIDTH, 2 * WIDTH, 4 * WIDTH]
        self.stages = nn.ModuleList(
            nn.ModuleList([Block(gate, widths[s], widths[s + 1], 1 if s == 0 else 2)]) for s in range(3))
        self.output = nn.Linear(4 * WIDTH, CLASSES)

    def forward(self, x):
        y = torch.relu(self.norm(self.conv(x)))
        for stage in self.stages:
            for block in stage:
                y = block(y)
        return self.output(y.mean((2, 3)))


class Vit(nn.Module):
    """Patches of 2 x 3 places of a picture of 8 x 12, width 8, two heads, two layers."""

    def __init__(self, channels, norm_first):
        super().__init__()
        self.patches = nn.Conv2d(channels, 8, 4, 4)
        self.class_token, self.positions = nn.Parameter(rounded(1, 8)), nn.Parameter(rounded(7, 8))
        layer = nn.TransformerEncoderLayer(8, 2, 12, 0.0, "gelu", batch_first=True, norm_first=norm_first)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(8) if norm_first else None)
        self.output = nn.Linear(8, CLASSES)

    def forward(self, x):
        tokens = self.patches(x).flatten(2).transpose(1, 2)
        tokens = torch.cat([self.class_token.expand(len(x), 1, 8), tokens], 1) + self.positions
        return self.output(self.encoder(tokens)[:, 0])


def make(tensors, gate, network, channels, size):
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(parameter.to(torch.bfloat16).to(torch.float32))
    images, labels = rounded(6, channels, *size), torch.randint(0, CLASSES, (6,))
    tensors |= {f"{gate}.images": images.permute(0, 2, 3, 1), f"{gate}.labels": labels.float()}
    for name, parameter in network.named_parameters():
        tensors[f"{gate}.weight.{name}"] = parameter.detach().clone()
    optimiser = torch.optim.Adam(network.parameters(), lr=0.003)
    losses = []
    for step in range(STEPS):
        optimiser.zero_grad()
        loss = F.cross_entropy(network(images), labels, label_smoothing=0.1)
        loss.backward()
        if step == 0:
            tensors |= {f"{gate}.grad.{name}": p.grad.clone() for name, p in network.named_parameters()}
        optimiser.step()
        losses.append(loss.detach())
    network.eval()
    tensors |= {f"{gate}.losses": torch.stack(losses), f"{gate}.logits": network(images)}


if __name__ == "__main__":
    torch.manual_seed(8)
    tensors = {}
    for gate, channels, size in (("none", 3, (10, 9)), ("se", 1, (9, 9)), ("cbam", 3, (8, 9)), ("sk", 1, (9, 10))):
        make(tensors, gate, Network(gate, channels), channels, size)
    make(tensors, "vit", Vit(3, True), 3, (8, 12))
    make(tensors, "vit_post", Vit(1, False), 1, (8, 12))
    save("image_classifier.safetensors", tensors)
