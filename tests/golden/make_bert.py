"""Golden values of Hugging Face's BERT family: weights as its files name them, outputs, gradients of every
parameter, and the losses of ten steps of Adam.

Run with transformers 5 and PyTorch 2.13 from this folder: python make_bert.py
"""

import json

import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertModel,
    DistilBertConfig,
    DistilBertForMaskedLM,
    DistilBertForSequenceClassification,
    DistilBertModel,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForSequenceClassification,
)

from safetensors_file import save

PAD = {"bert": 0, "distilbert": 0, "roberta": 1}
TEXTS = [[2, 7, 9, 21, 3, 11, 8, 3], [2, 5, 3], [2, 30, 12, 12, 4, 6, 3, 22, 9, 28, 3], [2, 3]]
TYPES = [[0, 0, 0, 0, 0, 1, 1, 1], [0, 0, 0], [0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1], [0, 0]]
LABELS = [2, 0, 1, 2]  # of texts
WORDS = [5, 17, 30, 9, 31, 4, 4, 21]  # of the first two tokens of each text

BERT = {
    "vocab_size": 32,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "max_position_embeddings": 16,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
DISTIL = {
    "vocab_size": 32,
    "dim": 12,
    "n_layers": 2,
    "n_heads": 3,
    "hidden_dim": 20,
    "max_position_embeddings": 16,
    "dropout": 0.0,
    "attention_dropout": 0.0,
    "seq_classif_dropout": 0.0,
}


def cases():
    yield BertModel, BertConfig(**BERT)
    yield BertModel, BertConfig(**{**BERT, "hidden_act": "gelu_new", "type_vocab_size": 3})
    yield BertForMaskedLM, BertConfig(**BERT)
    yield BertForMaskedLM, BertConfig(**{**BERT, "tie_word_embeddings": False, "hidden_act": "relu"})
    yield BertForSequenceClassification, BertConfig(**BERT, num_labels=3)
    yield DistilBertModel, DistilBertConfig(**DISTIL)
    yield DistilBertForMaskedLM, DistilBertConfig(**DISTIL)
    yield DistilBertForSequenceClassification, DistilBertConfig(**DISTIL, num_labels=3)
    yield RobertaForMaskedLM, RobertaConfig(**{**BERT, "type_vocab_size": 1, "layer_norm_eps": 1e-5})
    yield RobertaForSequenceClassification, RobertaConfig(**BERT, num_labels=3)


def rounded(module):
    """Weights that bfloat16 holds exactly, far enough from their beginnings to matter."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
            parameter.copy_(parameter.to(torch.bfloat16).to(torch.float32))
    return module


def run(model, config):
    """Outputs by name, of tokens that are no padding, and the loss."""
    size, pad = max(map(len, TEXTS)), PAD[config.model_type]
    ids = torch.tensor([text + [pad] * (size - len(text)) for text in TEXTS])
    mask = torch.tensor([[1] * len(text) + [0] * (size - len(text)) for text in TEXTS])
    inputs = {"input_ids": ids, "attention_mask": mask}
    if getattr(config, "type_vocab_size", 0) > 1:
        inputs["token_type_ids"] = torch.tensor([types + [0] * (size - len(types)) for types in TYPES])
    name = type(model).__name__
    if name.endswith("ForSequenceClassification"):
        logits = model(**inputs).logits
        return {"logits": logits}, torch.nn.functional.cross_entropy(logits, torch.tensor(LABELS))
    if name.endswith("ForMaskedLM"):
        logits = model(**inputs).logits[:, :2].reshape(len(WORDS), -1)
        return {"logits": logits}, torch.nn.functional.cross_entropy(logits, torch.tensor(WORDS))
    output = model(**inputs)
    hidden = torch.cat([output.last_hidden_state[i, : len(text)] for i, text in enumerate(TEXTS)])
    outputs = {"hidden": hidden}
    loss = (hidden**3).mean()
    if config.model_type != "mpnet" and "pooler_output" in output and output.pooler_output is not None:
        outputs["pooled"] = output.pooler_output
        loss = loss + (output.pooler_output**3).mean()
    return outputs, loss


def main(models, name):
    torch.manual_seed(11)
    tensors, listed = {}, []
    for kind, config in models:
        config._attn_implementation = "eager"
        model = rounded(kind(config)).train()
        prefix = f"{len(listed)}/"
        # A decoder that is not tied has a bias of its own; the head's is then a leftover that nothing reads.
        unused = [] if config.tie_word_embeddings else ["cls.predictions.bias"]
        named = [(key, value) for key, value in model.named_parameters() if key not in unused]
        named = [(key, value) for key, value in named if not key.startswith("pooler.") or config.model_type != "mpnet"]
        for key, value in named:
            tensors[prefix + "weight/" + key] = value.detach().clone()
        losses, optimizer = [], torch.optim.Adam(model.parameters(), lr=0.01)
        for step in range(10):
            optimizer.zero_grad()
            outputs, loss = run(model, config)
            loss.backward()
            losses.append(loss.item())
            if step == 0:
                for key, value in outputs.items():
                    tensors[prefix + key] = value.detach()
                for key, value in named:
                    tensors[prefix + "grad/" + key] = value.grad.clone()
            optimizer.step()
        tensors[prefix + "losses"] = torch.tensor(losses)
        listed.append({"class": kind.__name__, "config": json.loads(config.to_json_string(use_diff=False))})
    save(f"{name}.safetensors", tensors)
    batch = {"texts": TEXTS, "types": TYPES, "labels": LABELS, "words": WORDS}
    with open(f"{name}.json", "w") as file:
        json.dump({"batch": batch, "cases": listed}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main(cases(), "bert")
