"""Golden values of pre-training: transformers' BertForPreTraining, its loss, gradients, and ten steps of the optimiser of
BERT's original code (Adam without bias correction, decay not on norms and biases, gradients clipped to the norm 1).

Run with PyTorch 2.13 and transformers from this folder: python make_pretraining.py
"""

import json

import torch
from transformers import BertConfig, BertForPreTraining

from safetensors_file import save

CONFIG = {
    "vocab_size": 19,
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 12,
    "type_vocab_size": 2,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "model_type": "bert",
}
# Tokens, where the second text begins, places to predict, what they are, and whether the second text follows (0).
PAIRS = [
    ([2, 7, 4, 9, 3, 11, 4, 3], 5, [2, 6], [8, 12], 0),
    ([2, 5, 3, 6, 17, 10, 3], 3, [4], [13], 1),
    ([2, 4, 15, 16, 3, 9, 8, 7, 6, 3], 5, [1, 2, 7], [18, 15, 5], 0),
]


def loss_of(model):
    longest = max(len(tokens) for tokens, *_ in PAIRS)
    shape = (len(PAIRS), longest)
    ids, types, mask = (torch.zeros(shape, dtype=torch.long) for _ in range(3))
    labels = torch.full(shape, -100)
    for row, (tokens, second, places, targets, _) in enumerate(PAIRS):
        ids[row, : len(tokens)] = torch.tensor(tokens)
        types[row, second : len(tokens)] = 1
        mask[row, : len(tokens)] = 1
        labels[row, places] = torch.tensor(targets)
    follows = torch.tensor([pair[4] for pair in PAIRS])
    out = model(ids, attention_mask=mask, token_type_ids=types, labels=labels, next_sentence_label=follows)
    return out.loss


def step(parameters, moments, rate):
    """One update of the optimiser in google-research/bert, optimization.py."""
    norm = torch.sqrt(sum((p.grad**2).sum() for _, p in parameters))
    scale = min(1.0, 1.0 / (norm.item() + 1e-6))
    for name, p in parameters:
        g = p.grad * scale
        m, v = moments.setdefault(name, [torch.zeros_like(p), torch.zeros_like(p)])
        m.mul_(0.9).add_(0.1 * g)
        v.mul_(0.999).add_(0.001 * g * g)
        update = m / (v.sqrt() + 1e-6)
        if not (name.endswith("bias") or "LayerNorm" in name):
            update = update + 0.01 * p.detach()
        with torch.no_grad():
            p.sub_(rate * update)


def main():
    torch.manual_seed(21)
    torch.set_num_threads(1)
    model = BertForPreTraining(BertConfig(**{k: v for k, v in CONFIG.items() if k != "model_type"}))
    model.train()
    parameters, tensors, moments, losses = [], {}, {}, []
    for name, p in model.named_parameters():
        with torch.no_grad():
            p.add_(0.2 * torch.randn_like(p))
            p.copy_(p.to(torch.bfloat16).to(torch.float32))
        parameters.append((name, p))
        tensors["weight/" + name] = p.detach().clone()
    for i in range(10):
        model.zero_grad()
        loss = loss_of(model)
        loss.backward()
        losses.append(loss.item())
        if i == 0:
            for name, p in parameters:
                tensors["grad/" + name] = p.grad.clone()
        step(parameters, moments, 0.01)
    tensors["losses"] = torch.tensor(losses)
    save("pretraining.safetensors", tensors)
    with open("pretraining.json", "w") as file:
        json.dump({"config": CONFIG, "pairs": PAIRS}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
