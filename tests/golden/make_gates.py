"""Golden values of gates: squeeze and excitation, CBAM, selective kernels, temporal attention. Forward and gradients.

Images are kept channels last. Run with PyTorch 2.13 from this folder: python make_gates.py
"""

import torch
from torch import nn

from safetensors_file import save


def rounded(*shape):
    """Numbers that bfloat16 holds exactly: half the size on disk, and nothing lost."""
    return torch.randn(*shape).to(torch.bfloat16).to(torch.float32)


def last(t):
    """[..., C, H, W] as [..., H, W, C]."""
    return t.movedim(-3, -1) if t.dim() >= 4 else t


class SqueezeExcite(nn.Module):
    def __init__(self, channels, reduction):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(channels, channels // reduction), nn.Linear(channels // reduction, channels)

    def squeeze(self, pooled):
        return self.fc2(torch.relu(self.fc1(pooled)))

    def forward(self, x):
        return x * torch.sigmoid(self.squeeze(x.mean((2, 3))))[:, :, None, None]


class ChannelAttention(SqueezeExcite):
    def forward(self, x):
        gate = torch.sigmoid(self.squeeze(x.mean((2, 3))) + self.squeeze(x.flatten(2).max(2).values))
        return x * gate[:, :, None, None]


class SpatialAttention(nn.Module):
    def __init__(self, kernel):
        super().__init__()
        self.conv = nn.Conv2d(2, 1, kernel, padding=kernel // 2, bias=False)

    def forward(self, x):
        return x * torch.sigmoid(self.conv(torch.cat([x.mean(1, keepdim=True), x.max(1, keepdim=True).values], 1)))


class Cbam(nn.Module):
    def __init__(self, channels, reduction):
        super().__init__()
        self.channel, self.spatial = ChannelAttention(channels, reduction), SpatialAttention(7)

    def forward(self, x):
        return self.spatial(self.channel(x))


class CommonChannelAttention(nn.Module):
    """As most public CBAM code has it: 1 x 1 convolutions without bias on pooled maps."""

    def __init__(self, channels, reduction):
        super().__init__()
        self.avg_pool, self.max_pool = nn.AdaptiveAvgPool2d(1), nn.AdaptiveMaxPool2d(1)
        self.fc1 = nn.Conv2d(channels, channels // reduction, 1, bias=False)
        self.fc2 = nn.Conv2d(channels // reduction, channels, 1, bias=False)

    def forward(self, x):
        squeezed = [self.fc2(torch.relu(self.fc1(pool(x)))) for pool in (self.avg_pool, self.max_pool)]
        return x * torch.sigmoid(squeezed[0] + squeezed[1])


class CommonCbam(nn.Module):
    def __init__(self, channels, reduction, kernel):
        super().__init__()
        self.channel, self.spatial = CommonChannelAttention(channels, reduction), SpatialAttention(kernel)

    def forward(self, x):
        return self.spatial(self.channel(x))


class Branch(nn.Module):
    def __init__(self, channels, filters, stride, groups, dilation):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, stride, dilation, dilation, groups, bias=False)
        self.norm = nn.BatchNorm2d(filters)

    def forward(self, x):
        return torch.relu(self.norm(self.conv(x)))


class SelectiveKernel(nn.Module):
    def __init__(self, channels, filters, stride, groups, branches, width):
        super().__init__()
        self.branches = nn.ModuleList(Branch(channels, filters, stride, groups, i + 1) for i in range(branches))
        self.fc, self.norm = nn.Linear(filters, width, bias=False), nn.BatchNorm1d(width)
        self.select = nn.ModuleList(nn.Linear(width, filters) for _ in range(branches))

    def forward(self, x):
        seen = torch.stack([branch(x) for branch in self.branches], 1)
        z = torch.relu(self.norm(self.fc(seen.sum(1).mean((2, 3)))))
        weights = torch.stack([select(z) for select in self.select], 1).softmax(1)
        return (seen * weights[:, :, :, None, None]).sum(1)


class TemporalAttention(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query = nn.Parameter(rounded(width))

    def forward(self, x, present):
        keys = x if x.dim() == 3 else x.mean((3, 4))
        scores = (keys @ self.query / self.query.numel() ** 0.5).masked_fill(~present, float("-inf"))
        return torch.einsum("bt,bt...->b...", scores.softmax(1), x)


def finish(tensors, name, module, x, *more):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(parameter.to(torch.bfloat16).to(torch.float32))
    x.requires_grad_()
    for key, value in module.named_parameters():
        tensors[f"{name}.weight.{key}"] = value.detach().clone()
    for key, value in module.named_buffers():
        if not key.endswith("num_batches_tracked"):
            tensors[f"{name}.weight.{key}"] = value.clone()
    y = module(x, *more)
    grad = rounded(*y.shape)
    y.backward(grad)
    tensors |= {f"{name}.x": last(x), f"{name}.y": last(y), f"{name}.y_grad": last(grad), f"{name}.dx": last(x.grad)}
    for key, value in module.named_parameters():
        tensors[f"{name}.grad.{key}"] = value.grad
    for key, value in module.named_buffers():
        if not key.endswith("num_batches_tracked"):
            tensors[f"{name}.after.{key}"] = value


def main():
    torch.manual_seed(6)
    tensors = {}
    finish(tensors, "se", SqueezeExcite(8, 4), rounded(3, 8, 5, 4))
    finish(tensors, "cbam", Cbam(8, 2), rounded(3, 8, 5, 4))
    finish(tensors, "sk", SelectiveKernel(6, 8, 2, 2, 2, 5), rounded(4, 6, 7, 6))
    finish(tensors, "sk3", SelectiveKernel(4, 4, 1, 1, 3, 3), rounded(3, 4, 6, 5))
    all_there = torch.ones(3, 5, dtype=torch.bool)
    holes = torch.tensor([[1, 1, 1, 0, 0], [0, 1, 0, 1, 1], [1, 0, 0, 0, 0]], dtype=torch.bool)
    finish(tensors, "time", TemporalAttention(6), rounded(3, 5, 6), all_there)
    finish(tensors, "time_holes", TemporalAttention(6), rounded(3, 5, 6), holes)
    finish(tensors, "time_maps", TemporalAttention(6), rounded(3, 5, 6, 4, 3), holes)
    for name, kernel in (("cbam_plain3", 3), ("cbam_plain7", 7)):
        one = {}
        finish(one, name, CommonCbam(8, 2, kernel), rounded(3, 8, 5, 4))
        tensors |= {key: value.flatten(1) if ".channel.fc" in key else value for key, value in one.items()}
    save("gates.safetensors", tensors)


if __name__ == "__main__":
    main()
