"""Golden values of convolution, its transpose, pooling, resizing and batch norm: forward and every gradient. Images are kept channels last.

Run with PyTorch 2.13 from this folder: python make_conv.py
"""

import torch
from torch.nn import functional as F

from safetensors_file import save


def rounded(*shape):
    """Numbers that bfloat16 holds exactly: half the size on disk, and nothing lost."""
    return torch.randn(*shape).to(torch.bfloat16).to(torch.float32)


def last(image):
    """[N, C, H, W] as [N, H, W, C]."""
    return image.permute(0, 2, 3, 1)


def keep(tensors, name, x, y, leaves):
    """Runs backward from a random weighting of y and keeps everything."""
    grad = rounded(*y.shape)
    y.backward(grad)
    tensors |= {f"{name}.x": last(x), f"{name}.y": last(y), f"{name}.grad": last(grad), f"{name}.dx": last(x.grad)}
    for key, leaf in leaves.items():
        tensors |= {f"{name}.{key}": leaf, f"{name}.d_{key}": leaf.grad}


def conv(tensors, name, image, weight, bias=False, **options):
    x, w = rounded(*image).requires_grad_(), rounded(*weight).requires_grad_()
    leaves = {"weight": w}
    if bias:
        leaves["bias"] = rounded(weight[0]).requires_grad_()
    keep(tensors, name, x, F.conv2d(x, w, leaves.get("bias"), **options), leaves)


def transposed(tensors, name, image, weight, bias=False, groups=1, **options):
    x, w = rounded(*image).requires_grad_(), rounded(*weight).requires_grad_()
    leaves = {"weight": w}
    if bias:
        leaves["bias"] = rounded(weight[1] * groups).requires_grad_()
    keep(tensors, name, x, F.conv_transpose2d(x, w, leaves.get("bias"), groups=groups, **options), leaves)


def pool(tensors, name, function):
    x = rounded(2, 3, 7, 6).round().requires_grad_()  # many equal numbers
    keep(tensors, name, x, function(x), {})


def batch_norm(tensors, name, training, relu):
    x = (rounded(3, 5, 4, 2) * 2 + 1).requires_grad_()
    weight, bias = rounded(5).requires_grad_(), rounded(5).requires_grad_()
    mean, variance = rounded(5), rounded(5).abs() + 0.5
    tensors |= {f"{name}.mean": mean.clone(), f"{name}.var": variance.clone()}
    y = F.batch_norm(x, mean, variance, weight, bias, training=training, momentum=0.3, eps=1e-3)
    keep(tensors, name, x, F.relu(y) if relu else y, {"weight": weight, "bias": bias})
    tensors |= {f"{name}.mean_after": mean, f"{name}.var_after": variance}


torch.manual_seed(4)
tensors = {}
conv(tensors, "conv.plain", (2, 3, 9, 8), (5, 3, 3, 3), bias=True, padding=1)
conv(tensors, "conv.strided", (2, 4, 9, 8), (6, 4, 3, 5), bias=True, stride=(2, 1), padding=(1, 2))
conv(tensors, "conv.dilated", (1, 4, 9, 9), (4, 4, 3, 3), dilation=2, padding=2)
conv(tensors, "conv.grouped", (2, 4, 6, 5), (6, 2, 3, 3), groups=2)
conv(tensors, "conv.depthwise", (2, 6, 7, 7), (6, 1, 3, 3), groups=6, stride=2, padding=1)
conv(tensors, "conv.point", (2, 6, 3, 3), (4, 6, 1, 1), bias=True)
pool(tensors, "pool.max", lambda x: F.max_pool2d(x, 3, stride=2, padding=1))
pool(tensors, "pool.avg", lambda x: F.avg_pool2d(x, 3, stride=2, padding=1))
pool(tensors, "pool.avg_inside", lambda x: F.avg_pool2d(x, (3, 2), padding=1, count_include_pad=False))
pool(tensors, "pool.global_max", lambda x: F.adaptive_max_pool2d(x, 1))
pool(tensors, "pool.global_avg", lambda x: F.adaptive_avg_pool2d(x, 1))
batch_norm(tensors, "norm.train", True, False)
batch_norm(tensors, "norm.train_relu", True, True)
batch_norm(tensors, "norm.infer", False, False)
batch_norm(tensors, "norm.infer_relu", False, True)
transposed(tensors, "transposed.plain", (2, 5, 4, 3), (5, 3, 3, 3), bias=True, padding=1)
transposed(tensors, "transposed.double", (2, 4, 5, 4), (4, 3, 4, 4), stride=2, padding=1)
transposed(tensors, "transposed.uneven", (1, 4, 4, 3), (4, 2, 3, 2), bias=True, stride=(3, 2), output_padding=(1, 1),
           dilation=(1, 2), groups=2)
pool(tensors, "resize.larger", lambda x: F.interpolate(x, (11, 13), mode="bilinear", align_corners=False))
pool(tensors, "resize.smaller", lambda x: F.interpolate(x, (3, 5), mode="bilinear", align_corners=False))
pool(tensors, "resize.double", lambda x: F.interpolate(x, (14, 12), mode="bilinear", align_corners=False))
save("conv.safetensors", tensors)
