"""Golden values of the network with partitioned tasks: weights, loss, gradients, the losses of ten steps of Adam, and the
logits afterwards, for gated, ungated and single branches. Images are kept channels last.

Run with PyTorch 2.13 from this folder: python make_partition.py
"""

import torch
import torch.nn.functional as F
from torch import nn

from make_gates import rounded
from safetensors_file import save

WIDTH, GATE_STEPS, END_WEIGHT, STEPS, IGNORED = 4, 6, 3.0, 10, -100


class ConvNormRelu(nn.Module):
    def __init__(self, channels, filters, stride=1, dilation=1):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, stride, dilation, dilation, bias=False)
        self.norm = nn.BatchNorm2d(filters)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Up(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.ConvTranspose2d(channels, filters, 4, 2, 1, bias=False)
        self.norm = nn.BatchNorm2d(filters)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class Partition(nn.Module):
    def __init__(self, branches):
        super().__init__()
        w, self.branches, self.steps = WIDTH, branches, 0
        self.trunk = nn.ModuleList([ConvNormRelu(3, w, 2), ConvNormRelu(w, w)])
        self.deep = nn.ModuleList([ConvNormRelu(w, 2 * w, 2), ConvNormRelu(2 * w, 2 * w), ConvNormRelu(2 * w, 4 * w, 2),
                                   ConvNormRelu(4 * w, 4 * w, 1, 2), ConvNormRelu(4 * w, 4 * w, 1, 4)])
        self.up = Up(4 * w, 2 * w)
        self.coarse = nn.Conv2d(2 * w, 5 if branches == "single" else 4, 1)
        if branches != "single":
            self.shallow = nn.ModuleList([ConvNormRelu(w, 2 * w, 1, 2), ConvNormRelu(2 * w, 2 * w, 1, 4)])
            self.fine = nn.Conv2d(2 * w, 2 if branches == "gated" else 3, 1)

    def forward(self, x):
        shared = self.trunk[1](self.trunk[0](x))
        quarter = self.deep[1](self.deep[0](shared))
        deep = quarter
        for layer in self.deep[2:]:
            deep = layer(deep)
        coarse = self.coarse(self.up(deep) + quarter)
        coarse = F.interpolate(coarse, (x.shape[2] // 2, x.shape[3] // 2), mode="bilinear", align_corners=False)
        if self.branches == "single":
            return coarse, None
        return coarse, self.fine(self.shallow[1](self.shallow[0](shared)))

    def loss(self, x, coarse_labels, fine_labels):
        coarse, fine = self(x)
        end = coarse_labels == 0
        weights = torch.where(end, END_WEIGHT, 1.0)

        def weighted(logits, labels):
            return (F.cross_entropy(logits, labels, reduction="none") * weights).sum() / weights.sum()

        if self.branches == "single":
            return weighted(coarse, torch.where(end, fine_labels, coarse_labels + 1))
        first = weighted(coarse, coarse_labels)
        if self.branches == "ungated":
            return first + weighted(fine, torch.where(end, fine_labels, 2))
        share = min(1.0, self.steps / GATE_STEPS)
        self.steps += 1
        mask = (1 - share) * end + share * (coarse.detach().argmax(1) == 0)
        mask = torch.where(fine_labels == IGNORED, 0.0, mask)
        each = F.cross_entropy(fine, fine_labels, reduction="none", ignore_index=IGNORED)
        return first + (each * mask).sum() / mask.sum().clamp(min=1e-30)


def make(tensors, branches):
    network = Partition(branches)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(parameter.to(torch.bfloat16).to(torch.float32))
        network.coarse.bias[0] += 1  # ends are predicted somewhere from the first step on
    images = rounded(2, 3, 16, 24)
    coarse, fine = torch.randint(0, 4, (2, 8, 12)), torch.randint(0, 2, (2, 8, 12))
    if branches == "gated":
        fine[1] = IGNORED  # a picture without ships
        coarse[1] = torch.randint(2, 4, (8, 12))
    tensors |= {f"{branches}.images": images.permute(0, 2, 3, 1), f"{branches}.coarse": coarse.float(),
                f"{branches}.fine": fine.float()}
    for name, parameter in network.named_parameters():
        tensors[f"{branches}.weight.{name}"] = parameter.detach().clone()
    optimiser = torch.optim.Adam(network.parameters(), lr=0.003)
    losses = []
    for step in range(STEPS):
        optimiser.zero_grad()
        loss = network.loss(images, coarse, fine)
        loss.backward()
        if step == 0:
            tensors |= {f"{branches}.grad.{name}": p.grad.clone() for name, p in network.named_parameters()}
        optimiser.step()
        losses.append(loss.detach())
    network.eval()
    coarse_logits, fine_logits = network(images)
    tensors |= {f"{branches}.losses": torch.stack(losses),
                f"{branches}.coarse_logits": coarse_logits.permute(0, 2, 3, 1)}
    if fine_logits is not None:
        tensors[f"{branches}.fine_logits"] = fine_logits.permute(0, 2, 3, 1)


if __name__ == "__main__":
    torch.manual_seed(9)
    tensors = {}
    for branches in ("gated", "ungated", "single"):
        make(tensors, branches)
    save("partition.safetensors", tensors)
