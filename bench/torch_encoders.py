"""Encoders of the BERT family by transformers, with the shapes of `fovea bench encode`."""

import torch
from transformers import (
    BertConfig,
    BertModel,
    BigBirdConfig,
    BigBirdModel,
    LongformerConfig,
    LongformerModel,
)

SHAPES = {
    "base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12, "intermediate_size": 3072},
    "minilm": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
}
NO_DROPOUT = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
VOCABULARY = 30522


def texts(batch, tokens):
    return torch.randint(2, VOCABULARY, (batch, tokens))


def bert_model(shape, tokens, attention):
    config = BertConfig(**SHAPES[shape], **NO_DROPOUT, vocab_size=VOCABULARY, max_position_embeddings=tokens + 1)
    config._attn_implementation = attention
    return BertModel(config, add_pooling_layer=False).eval()


def bert(shape, compute, batch, tokens, lines):
    """Variants of reading `lines` texts, `batch` at a time."""

    def prepared(attention):
        model, ids = bert_model(shape, tokens, attention), texts(batch, tokens)
        if compute == "int8":
            model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)

        @torch.inference_mode()
        def step():
            for _ in range(0, lines, batch):
                model(ids)

        return step

    return {"SDPA": lambda: prepared("sdpa"), "eager": lambda: prepared("eager")}


def long_model(name, tokens, backward):
    """Two layers of Hugging Face's Longformer or BigBird, as Fovea has them."""
    sizes = {**SHAPES["base"], **NO_DROPOUT, "num_hidden_layers": 2, "vocab_size": VOCABULARY}

    def prepared():
        if name == "longformer":
            config = LongformerConfig(**sizes, max_position_embeddings=tokens + 2, attention_window=512, pad_token_id=1)
            model = LongformerModel(config, add_pooling_layer=False)
        else:
            config = BigBirdConfig(**sizes, max_position_embeddings=tokens, block_size=64, num_random_blocks=3)
            model = BigBirdModel(config, add_pooling_layer=False)
        ids = texts(1, tokens)
        model.train(backward)

        def step():
            if not backward:
                with torch.inference_mode():
                    model(ids)
                return
            model(ids).last_hidden_state.mean().backward()
            model.zero_grad(set_to_none=True)

        return step

    return {"transformers": prepared}
