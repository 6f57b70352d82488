"""Golden features of MobileNet with its published weights, for one picture that a formula draws.

Run with PyTorch 2.13 from this folder, given the folder of the weights: python make_mobilenet.py DATA/mobilenet
"""

import sys

import numpy
import torch
import torch.nn.functional as F

from safetensors_file import save

BLOCKS = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)] + [(512, 1)] * 5 + [(1024, 2), (1024, 1)]
SLIM = ("MobilenetV1/Conv2d_0", "MobilenetV1/Conv2d_{}_depthwise", "MobilenetV1/Conv2d_{}_pointwise", "/BatchNorm",
        "/weights", "/depthwise_weights")
KERAS = ("conv1", "conv_dw_{}", "conv_pw_{}", "_bn", "/kernel", "/depthwise_kernel")


def read(stem):
    data = numpy.fromfile(stem + ".f32", dtype="<f4")
    tensors = {}
    for line in open(stem + ".manifest.tsv"):
        name, shape, offset, size = line.rstrip("\n").split("\t")
        begin, count = int(offset) // 4, int(size) // 4
        tensors[name] = torch.from_numpy(data[begin:begin + count].reshape([int(n) for n in shape.split("x")]).copy())
    return tensors


def layer(x, kernel, norm, weights, stride, groups=1):
    """SAME padding, convolution, batch norm, ReLU6."""
    total = max((-(-x.shape[2] // stride) - 1) * stride + kernel.shape[2] - x.shape[2], 0)
    x = F.pad(x, (total // 2, total - total // 2) * 2)
    x = F.conv2d(x, kernel, stride=stride, groups=groups)
    moments = (weights[f"{norm}/{part}"] for part in ("moving_mean", "moving_variance", "gamma", "beta"))
    return F.relu6(F.batch_norm(x, *moments, eps=1e-3))


def features(weights, names, x, blocks):
    first, depthwise, pointwise, norm, kernel, depthwise_kernel = names
    x = layer(x, weights[first + kernel].permute(3, 2, 0, 1), first + norm, weights, 2)
    for i in range(blocks):
        name = depthwise.format(i + 1)
        x = layer(x, weights[name + depthwise_kernel].permute(2, 3, 0, 1), name + norm, weights, BLOCKS[i][1], x.shape[1])
        name = pointwise.format(i + 1)
        x = layer(x, weights[name + kernel].permute(3, 2, 0, 1), name + norm, weights, 1)
    return x.permute(0, 2, 3, 1)


def picture(size):
    h, w, c = torch.meshgrid(torch.arange(size), torch.arange(size), torch.arange(3), indexing="ij")
    pixels = (h * 7 + w * 3 + c * 41 + (h * w) // 9) % 256
    return (pixels.float() / 127.5 - 1).permute(2, 0, 1)[None]


folder = sys.argv[1]
small, large = read(folder + "/mobilenet_v1_0.25_128"), read(folder + "/mobilenet_v1_1.00_224")
save("mobilenet.safetensors", {
    "0.25.13": features(small, SLIM, picture(64), 13),
    "0.25.5": features(small, SLIM, picture(33), 5),
    "1.00.11.mean": features(large, KERAS, picture(64), 11).mean((1, 2)),
})
