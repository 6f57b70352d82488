"""Golden values of single ops: layer norm, and cross-entropy with label smoothing and an ignored index.

Run with PyTorch 2.13 from this folder: python make_ops.py
"""

import torch
from torch.nn import functional as F

from safetensors_file import save


def layer_norm(tensors):
    x = torch.randn(5, 37) * 2 + 1
    weight, bias, grad = torch.randn(37), torch.randn(37), torch.randn(5, 37)
    for leaf in (x, weight, bias):
        leaf.requires_grad_()
    y = F.layer_norm(x, (37,), weight, bias)
    y.backward(grad)
    for name, tensor in dict(x=x, weight=weight, bias=bias, grad=grad, y=y, dx=x.grad, d_weight=weight.grad,
                             d_bias=bias.grad).items():
        tensors["layer_norm." + name] = tensor


def cross_entropy(tensors):
    logits = torch.randn(6, 37) * 3
    targets = torch.tensor([3, 0, -100, 36, 7, -100])
    tensors["cross_entropy.logits"] = logits
    tensors["cross_entropy.targets"] = targets.to(torch.float32)
    for smoothing in (0.0, 0.1):
        for reduction in ("mean", "sum", "none"):
            x = logits.clone().requires_grad_()
            loss = F.cross_entropy(x, targets, label_smoothing=smoothing, reduction=reduction)
            loss.backward(torch.ones_like(loss))
            name = f"cross_entropy.{reduction}.{smoothing}"
            tensors[name + ".loss"] = loss.reshape(-1)
            tensors[name + ".dx"] = x.grad


torch.manual_seed(3)
tensors = {}
layer_norm(tensors)
cross_entropy(tensors)
save("ops.safetensors", tensors)
