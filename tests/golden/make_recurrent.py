"""Golden values of PyTorch's LSTM and GRU: stacked, both ways, ragged; and of their cells. Forward and gradients.

Run with PyTorch 2.13 from this folder: python make_recurrent.py
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from safetensors_file import save

LENGTHS = [4, 7, 1, 5]
INPUT, HIDDEN, LAYERS = 5, 6, 2


def rounded(*shape):
    """Numbers that bfloat16 holds exactly: half the size on disk, and nothing lost."""
    return torch.randn(*shape).to(torch.bfloat16).to(torch.float32)


def packed(padded):
    """[B, T, d] to the tokens of the sequences, one after the other."""
    return torch.cat([padded[i, :length] for i, length in enumerate(LENGTHS)])


def round_weights(module):
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.copy_(parameter.to(torch.bfloat16).to(torch.float32))


def finish(name, module, inputs, outputs, tensors):
    """Runs backward from a random weighting of all outputs and keeps everything."""
    loss = 0
    for key, value in outputs.items():
        direction = rounded(*value.shape)
        tensors[f"{name}.output.{key}"] = value
        tensors[f"{name}.output_grad.{key}"] = direction
        loss = loss + (value * direction).sum()
    loss.backward()
    for key, value in inputs.items():
        tensors[f"{name}.input.{key}"] = value
        tensors[f"{name}.input_grad.{key}"] = value.grad
    for key, value in module.named_parameters():
        tensors[f"{name}.weight.{key}"] = value
        tensors[f"{name}.grad.{key}"] = value.grad


def make_layer(kind, tensors):
    module = getattr(nn, kind)(INPUT, HIDDEN, LAYERS, batch_first=True, bidirectional=True)
    round_weights(module)
    padded = rounded(len(LENGTHS), max(LENGTHS), INPUT)
    tokens = packed(padded).requires_grad_()
    rows, at = [], 0
    for length in LENGTHS:
        rows.append(nn.functional.pad(tokens[at : at + length], (0, 0, 0, max(LENGTHS) - length)))
        at += length
    inputs = {"x": tokens, "h": rounded(2 * LAYERS, len(LENGTHS), HIDDEN).requires_grad_()}
    first = inputs["h"]
    if kind == "LSTM":
        inputs["c"] = rounded(2 * LAYERS, len(LENGTHS), HIDDEN).requires_grad_()
        first = (inputs["h"], inputs["c"])
    out, last = module(pack_padded_sequence(torch.stack(rows), LENGTHS, batch_first=True, enforce_sorted=False), first)
    out, _ = pad_packed_sequence(out, batch_first=True)
    outputs = {"out": packed(out)}
    outputs.update(zip("hc", last) if kind == "LSTM" else {"h": last})
    finish(kind, module, inputs, outputs, tensors)


def make_cell(kind, tensors):
    module = getattr(nn, kind)(INPUT, HIDDEN)
    round_weights(module)
    inputs = {"x": rounded(3, INPUT).requires_grad_(), "h": rounded(3, HIDDEN).requires_grad_()}
    if kind == "LSTMCell":
        inputs["c"] = rounded(3, HIDDEN).requires_grad_()
        outputs = dict(zip("hc", module(inputs["x"], (inputs["h"], inputs["c"]))))
    else:
        outputs = {"h": module(inputs["x"], inputs["h"])}
    finish(kind, module, inputs, outputs, tensors)


def main():
    torch.manual_seed(11)
    tensors = {}
    for kind in ("LSTM", "GRU"):
        make_layer(kind, tensors)
        make_cell(kind + "Cell", tensors)
    save("recurrent.safetensors", tensors)


main()
