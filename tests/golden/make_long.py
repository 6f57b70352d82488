"""Golden values of Hugging Face's Longformer and BigBird: weights as its files name them, outputs, gradients of
every parameter, and the losses of ten steps of Adam. Windows differ by layer, texts have none to several global
tokens, and padding fills batches. BigBird's random blocks are those of its evaluation mode.

Run with transformers 5 and PyTorch 2.13 from this folder: python make_long.py
"""

import json

import torch
from transformers import (
    BigBirdConfig,
    BigBirdForMaskedLM,
    BigBirdForSequenceClassification,
    BigBirdModel,
    LongformerConfig,
    LongformerForMaskedLM,
    LongformerForSequenceClassification,
    LongformerModel,
)

from make_bert import rounded
from safetensors_file import save

LENGTHS = [29, 1, 15, 40]  # BigBird's blocks of 2 are sparse from 15 or 19 tokens on, those of 4 from 29 on
LABELS = [2, 0, 1, 2]  # of texts
WORDS = [5, 17, 30, 9]  # of the first token of each text

SMALL = {
    "vocab_size": 32,
    "hidden_size": 12,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 20,
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
LONGFORMER = {**SMALL, "max_position_embeddings": 60, "pad_token_id": 1, "layer_norm_eps": 1e-5}
BIG_BIRD = {**SMALL, "max_position_embeddings": 60, "block_size": 2, "num_random_blocks": 1}

# Global tokens as Fovea's option names them; "t7" is the token of id 7.
SOME = "t7 t19 t30"


def cases():
    yield LongformerModel, LongformerConfig(**LONGFORMER, attention_window=4), "none"
    yield LongformerModel, LongformerConfig(**LONGFORMER, attention_window=[4, 8]), SOME
    yield LongformerForMaskedLM, LongformerConfig(**{**LONGFORMER, "type_vocab_size": 1}, attention_window=[8, 4]), "first"
    yield LongformerForSequenceClassification, LongformerConfig(**LONGFORMER, attention_window=4, num_labels=3), "first"
    yield BigBirdModel, BigBirdConfig(**BIG_BIRD, rescale_embeddings=True), None
    yield BigBirdModel, BigBirdConfig(**{**BIG_BIRD, "block_size": 4}, use_bias=False), None
    yield BigBirdModel, BigBirdConfig(**BIG_BIRD, attention_type="original_full"), None
    yield BigBirdForMaskedLM, BigBirdConfig(**{**BIG_BIRD, "num_random_blocks": 2}), None
    yield BigBirdForSequenceClassification, BigBirdConfig(**BIG_BIRD, num_labels=3, hidden_act="relu"), None


def texts():
    generator = torch.Generator().manual_seed(5)
    return [torch.randint(2, 32, (length,), generator=generator).tolist() for length in LENGTHS]


TEXTS = texts()
TYPES = [[int(i > length // 2) for i in range(length)] for length in LENGTHS]


def places_of(chosen, text):
    """Where a text's global tokens stand."""
    ids = {int(word[1:]) for word in chosen.split() if word.startswith("t")}
    return [i for i, token in enumerate(text) if token in ids or (chosen == "first" and i == 0)]


def inputs_of(config, places, chosen):
    size, pad = max(LENGTHS[i] for i in places), config.pad_token_id
    fill = lambda rows, value: torch.tensor([rows[i] + [value] * (size - LENGTHS[i]) for i in places])
    inputs = {
        "input_ids": fill(TEXTS, pad),
        "attention_mask": fill([[1] * length for length in LENGTHS], 0),
    }
    if config.type_vocab_size > 1:
        inputs["token_type_ids"] = fill(TYPES, 0)
    if chosen is not None:
        marked = torch.zeros(len(places), size, dtype=torch.long)
        for row, i in enumerate(places):
            marked[row, places_of(chosen, TEXTS[i])] = 1
        inputs["global_attention_mask"] = marked
    return inputs


def forward(model, config, chosen):
    """The model's outputs of each text. BigBird decides by the batch whether attention is sparse, and forgets to
    become sparse again, so that each text is a batch of its own there."""
    if config.model_type == "longformer":
        output = model(**inputs_of(config, range(len(LENGTHS)), chosen))
        return [{key: value[i] for key, value in output.items()} for i in range(len(LENGTHS))]
    outputs = []
    for i in range(len(LENGTHS)):
        bert = model if isinstance(model, BigBirdModel) else model.bert
        bert.set_attention_type(config.attention_type)
        outputs.append({key: value[0] for key, value in model(**inputs_of(config, [i], None)).items()})
    return outputs


def run(model, config, chosen):
    """Outputs by name, of tokens that are no padding, and the loss."""
    found = forward(model, config, chosen)
    name = type(model).__name__
    if name.endswith("ForSequenceClassification"):
        logits = torch.stack([each["logits"] for each in found])
        return {"logits": logits}, torch.nn.functional.cross_entropy(logits, torch.tensor(LABELS))
    if name.endswith("ForMaskedLM"):
        logits = torch.stack([each["logits"][0] for each in found])
        return {"logits": logits}, torch.nn.functional.cross_entropy(logits, torch.tensor(WORDS))
    hidden = torch.cat([each["last_hidden_state"][:length] for each, length in zip(found, LENGTHS)])
    pooled = torch.stack([each["pooler_output"] for each in found])
    return {"hidden": hidden, "pooled": pooled}, (hidden**3).mean() + (pooled**3).mean()


def main():
    torch.manual_seed(12)
    tensors, listed = {}, []
    for kind, config, chosen in cases():
        config._attn_implementation = "eager"
        model = rounded(kind(config)).eval()  # without dropout, and with BigBird's random blocks of use
        prefix = f"{len(listed)}/"
        listed.append({"class": kind.__name__, "config": json.loads(config.to_json_string(use_diff=False))})
        if chosen is not None:
            listed[-1]["global"] = chosen
        named = list(model.named_parameters())
        for key, value in named:
            tensors[prefix + "weight/" + key] = value.detach().clone()
        losses, optimizer = [], torch.optim.Adam(model.parameters(), lr=0.01)
        for step in range(10):
            optimizer.zero_grad()
            outputs, loss = run(model, config, chosen)
            loss.backward()
            losses.append(loss.item())
            if step == 0:
                for key, value in outputs.items():
                    tensors[prefix + key] = value.detach()
                for key, value in named:
                    if value.grad is not None:
                        tensors[prefix + "grad/" + key] = value.grad.clone()
            optimizer.step()
        tensors[prefix + "losses"] = torch.tensor(losses)
    save("long.safetensors", tensors)
    batch = {"texts": TEXTS, "types": TYPES, "labels": LABELS, "words": WORDS}
    with open("long.json", "w") as file:
        json.dump({"batch": batch, "cases": listed}, file)
        file.write("\n")


if __name__ == "__main__":
    main()
