"""Writes safetensors files for the golden scripts: float32, or bfloat16 where the values fit it exactly."""

import json
import struct

import torch


def save(path, tensors):
    header, blobs, offset = {}, [], 0
    for name in sorted(tensors):
        tensor = tensors[name].detach().contiguous()
        short = tensor.to(torch.bfloat16)
        exact = tensor.dtype == torch.float32 and bool((short.to(torch.float32) == tensor).all())
        if exact and tensor.numel() > 64:
            dtype, blob = "BF16", short.view(torch.int16).numpy().tobytes()
        else:
            dtype, blob = "F32", tensor.to(torch.float32).numpy().tobytes()
        header[name] = {"dtype": dtype, "shape": list(tensor.shape), "data_offsets": [offset, offset + len(blob)]}
        blobs.append(blob)
        offset += len(blob)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        for blob in blobs:
            file.write(blob)
