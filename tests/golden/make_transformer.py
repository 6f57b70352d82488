"""Golden values of PyTorch's attention layers: state dict, inputs, outputs and gradients in one file each.

Run with PyTorch 2.13 from this folder: python make_transformer.py
"""

import torch
from torch import nn

from safetensors_file import save

KEEP_ROWS = 8  # of a large gradient, these rows are enough to tell right from wrong


def rounded(module):
    """Weights that bfloat16 holds exactly: half the size on disk, and nothing lost."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.dim() == 1:
                parameter.add_(0.1 * torch.randn_like(parameter))
            parameter.copy_(parameter.to(torch.bfloat16).to(torch.float32))
    return module


def randn(*shape):
    return torch.randn(*shape).to(torch.bfloat16).to(torch.float32).requires_grad_()


def store(name, module, inputs, output):
    direction = torch.randn_like(output).to(torch.bfloat16).to(torch.float32)
    output.backward(direction)
    tensors = {"weight." + key: value for key, value in module.state_dict().items()}
    for key, value in inputs.items():
        tensors["input." + key] = value
        tensors["input_grad." + key] = value.grad
    for key, value in module.named_parameters():
        grad = value.grad
        tensors["grad." + key] = grad[:KEEP_ROWS] if grad.numel() > 20000 else grad
    tensors["output"] = output
    tensors["output_grad"] = direction
    save(name + ".safetensors", tensors)


def lengths_mask(lengths, size):
    return torch.arange(size)[None, :] >= torch.tensor(lengths)[:, None]


def main():
    torch.manual_seed(7)

    module = rounded(nn.MultiheadAttention(24, 3, batch_first=True))
    query, key, value = randn(2, 5, 24), randn(2, 7, 24), randn(2, 7, 24)
    output, _ = module(query, key, value, key_padding_mask=lengths_mask([7, 4], 7))
    store("multihead_cross", module, {"query": query, "key": key, "value": value}, output)

    module = rounded(nn.MultiheadAttention(24, 4, batch_first=True))
    x = randn(3, 9, 24)
    causal = torch.ones(9, 9, dtype=torch.bool).triu(1)
    output, _ = module(x, x, x, attn_mask=causal)
    store("multihead_causal", module, {"x": x}, output)

    for name, options in {
        "encoder_layer_post": {},
        "encoder_layer_pre": {"norm_first": True, "activation": "gelu", "dim_feedforward": 64},
    }.items():
        module = rounded(nn.TransformerEncoderLayer(36, 6, dropout=0.0, batch_first=True, **options))
        x = randn(4, 12, 36)
        store(name, module, {"x": x}, module(x))

    module = rounded(
        nn.Transformer(16, 2, 2, 2, dim_feedforward=24, dropout=0.0, batch_first=True)
    )
    source, target = randn(2, 6, 16), randn(2, 5, 16)
    padding = lengths_mask([6, 4], 6)
    output = module(
        source,
        target,
        tgt_mask=torch.ones(5, 5, dtype=torch.bool).triu(1),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )
    store("transformer", module, {"source": source, "target": target}, output)


if __name__ == "__main__":
    main()
