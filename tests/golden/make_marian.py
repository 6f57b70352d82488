"""Golden values of Hugging Face's MarianMTModel: weights as its files name them, the loss of a batch, gradients
of every parameter, the losses of ten steps of Adam, and what greedy and beam search write.

Run with transformers 5 and PyTorch 2.13 from this folder: python make_marian.py
"""

import json

import torch
from transformers import MarianConfig, MarianMTModel

from make_bert import rounded
from safetensors_file import save

SOURCES = [[7, 9, 21, 11, 8, 0], [5, 0], [30, 12, 12, 4, 6, 22, 9, 28, 3, 17, 0], [14, 15, 16, 0]]
TARGETS = [[9, 4, 25, 0], [6, 7, 0], [31, 2, 2, 8, 19, 0], [27, 11, 26, 5, 13, 18, 10, 0]]
SMALL = {
    "vocab_size": 34,
    "d_model": 12,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 3,
    "decoder_attention_heads": 3,
    "encoder_ffn_dim": 20,
    "decoder_ffn_dim": 20,
    "max_position_embeddings": 64,
    "dropout": 0.0,
    "pad_token_id": 33,
    "decoder_start_token_id": 33,
    "eos_token_id": 0,
    "forced_eos_token_id": 0,
    "scale_embedding": True,
    "activation_function": "swish",
    "num_beams": 1,
}
CASES = [
    SMALL,
    {**SMALL, "activation_function": "relu", "scale_embedding": False, "decoder_layers": 1},
    {**SMALL, "share_encoder_decoder_embeddings": False, "vocab_size": 40, "decoder_vocab_size": 34},
    {**SMALL, "share_encoder_decoder_embeddings": False, "tie_word_embeddings": False, "d_model": 18,
     "activation_function": "gelu", "decoder_vocab_size": 34},
]  # fmt: skip


def set_sinusoids(model):
    """They are no weights: what rounding did to them is undone."""
    with torch.no_grad():
        for stack in (model.model.encoder, model.model.decoder):
            stack.embed_positions.weight.copy_(stack.embed_positions.create_weight())
    return model


def padded(rows, pad):
    size = max(map(len, rows))
    return torch.tensor([row + [pad] * (size - len(row)) for row in rows])


def loss_of(model, config):
    ids = padded(SOURCES, config.pad_token_id)
    mask = padded([[1] * len(row) for row in SOURCES], 0)
    labels = padded(TARGETS, -100)
    return model(input_ids=ids, attention_mask=mask, labels=labels).loss


def searched(model, config, beams, limit):
    """Tokens without the first one, and without the end and what follows; scores of beam search."""
    options = {"num_beams": beams, "do_sample": False, "max_length": limit + 2, "early_stopping": beams > 1}
    options |= {"bad_words_ids": [[config.pad_token_id]], "num_return_sequences": beams, "length_penalty": 1.0}
    found = []
    for source in SOURCES:  # one by one: what stands beside a sentence must not matter
        out = model.generate(torch.tensor([source]), return_dict_in_generate=True, output_scores=True, **options)
        rows = []
        for i, row in enumerate(out.sequences.tolist()):
            tokens = row[1:]
            ends = 0 in tokens
            rows.append({"tokens": tokens[: tokens.index(0)] if ends else tokens})
            if beams > 1:
                rows[-1]["score"] = out.sequences_scores[i].item()
        found.append(rows)
    return found


def main():
    torch.manual_seed(3)
    tensors, listed = {}, []
    for settings in CASES:
        config = MarianConfig(**settings)
        config._attn_implementation = "eager"
        model = set_sinusoids(rounded(MarianMTModel(config)).train())
        # Half-learnt sentences, so that searches meet ends, doubts and, if it were allowed, padding.
        optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
        for _ in range(25):
            optimizer.zero_grad()
            loss_of(model, config).backward()
            optimizer.step()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.copy_(parameter.bfloat16().float())
            set_sinusoids(model)
            model.final_logits_bias.copy_((0.5 * torch.randn_like(model.final_logits_bias)).bfloat16().float())
            model.final_logits_bias[0, 33] += 6
        prefix = f"{len(listed)}/"
        state = {key: value for key, value in model.state_dict().items() if "embed_positions" not in key}
        if config.share_encoder_decoder_embeddings:
            drop = ["model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight", "lm_head.weight"]
        else:
            drop = ["lm_head.weight"] if config.tie_word_embeddings else []
        for key, value in state.items():
            if key not in drop:
                tensors[prefix + "weight/" + key] = value.detach().clone()
        model.eval()
        entry = {"config": json.loads(config.to_json_string(use_diff=False)), "greedy": searched(model, config, 1, 12)}
        entry["beam"] = searched(model, config, 4, 40)
        model.train()
        losses, optimizer = [], torch.optim.Adam(model.parameters(), lr=0.01)
        for step in range(10):
            optimizer.zero_grad()
            loss = loss_of(model, config)
            loss.backward()
            losses.append(loss.item())
            if step == 0:
                for key, value in model.named_parameters():
                    if value.grad is not None:
                        tensors[prefix + "grad/" + key] = value.grad.clone()
            optimizer.step()
        tensors[prefix + "losses"] = torch.tensor(losses)
        listed.append(entry)
    save("marian.safetensors", tensors)
    with open("marian.json", "w") as file:
        json.dump({"sources": SOURCES, "targets": TARGETS, "cases": listed}, file, indent=1)
        file.write("\n")


if __name__ == "__main__":
    main()
