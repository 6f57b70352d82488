"""Steps of training text classifiers in PyTorch and transformers: the peers of `fovea bench classify`."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

VOCABULARY, CLASSES = 10000, 2


def batch(texts, shortest, longest):
    """Lengths as Fovea's benchmark draws them; ids padded with 0, a mask, labels."""
    sizes = torch.tensor([shortest + 7 * i % (longest - shortest + 1) for i in range(texts)])
    mask = torch.arange(int(sizes.max()))[None] < sizes[:, None]
    ids = torch.randint(4, VOCABULARY, mask.shape) * mask
    return ids, sizes, mask, torch.arange(texts) % CLASSES


class LstmAttention(nn.Module):
    """`fovea train classify --model lstm` of the preset small: 128 features, both ways, one learned query."""

    def __init__(self, packed):
        super().__init__()
        self.packed = packed
        self.embedding = nn.Embedding(VOCABULARY, 128)
        self.encoder = nn.LSTM(128, 128, bidirectional=True, batch_first=True)
        self.keys = nn.Linear(256, 256)
        self.query = nn.Parameter(torch.randn(256) / 16)
        self.output = nn.Linear(256, CLASSES)

    def forward(self, ids, sizes, mask):
        x = F.dropout(self.embedding(ids), 0.5)
        if self.packed:
            read, _ = self.encoder(pack_padded_sequence(x, sizes, batch_first=True, enforce_sorted=False))
            states, _ = pad_packed_sequence(read, batch_first=True)
        else:
            states, _ = self.encoder(x)
        scores = (torch.tanh(self.keys(states)) @ self.query).masked_fill(~mask, float("-inf"))
        whole = (torch.softmax(scores, 1)[:, None] @ states)[:, 0]
        return self.output(F.dropout(whole, 0.5))


class TransformerAttention(nn.Module):
    """`--model transformer` of the preset small: 2 pre-norm layers of 128 features, 4 heads, attention pooling."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 128)
        layer = nn.TransformerEncoderLayer(128, 4, 512, 0.1, "gelu", batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, 2, nn.LayerNorm(128), enable_nested_tensor=False)
        self.keys = nn.Linear(128, 128)
        self.query = nn.Parameter(torch.randn(128) / 11)
        self.output = nn.Linear(128, CLASSES)
        place, rate = torch.arange(512)[:, None], 10000.0 ** (-torch.arange(0, 128, 2) / 128)
        self.register_buffer("places", torch.stack([(place * rate).sin(), (place * rate).cos()], 2).flatten(1))

    def forward(self, ids, sizes, mask):
        x = F.dropout(self.embedding(ids) * 128**0.5 + self.places[: ids.shape[1]], 0.1)
        states = self.encoder(x, src_key_padding_mask=~mask)
        scores = (torch.tanh(self.keys(states)) @ self.query).masked_fill(~mask, float("-inf"))
        whole = (torch.softmax(scores, 1)[:, None] @ states)[:, 0]
        return self.output(F.dropout(whole, 0.1))


class Bert(nn.Module):
    def __init__(self, preset):
        super().__init__()
        from transformers import BertConfig, BertForSequenceClassification

        width, layers, heads = {"tiny": (128, 2, 2), "mini": (256, 4, 4), "base": (768, 12, 12)}[preset]
        config = BertConfig(vocab_size=VOCABULARY, hidden_size=width, num_hidden_layers=layers,
                            num_attention_heads=heads, intermediate_size=4 * width, num_labels=CLASSES)
        self.model = BertForSequenceClassification(config)

    def forward(self, ids, sizes, mask):
        return self.model(input_ids=ids, attention_mask=mask.long()).logits


def training(make, texts, shortest, longest):
    """A builder of steps; make: a module of (ids, sizes, mask)."""

    def build():
        ids, sizes, mask, labels = batch(texts, shortest, longest)
        model = make().train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5, weight_decay=0.01, fused=True)

        def step():
            optimizer.zero_grad(set_to_none=True)
            F.cross_entropy(model(ids, sizes, mask), labels).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()

        return step

    return build


def variants(model, preset, texts, shortest, longest):
    sizes = (texts, shortest, longest)
    if model == "lstm":
        return {"padded": training(lambda: LstmAttention(False), *sizes),
                "packed": training(lambda: LstmAttention(True), *sizes)}
    if model == "transformer":
        return {"padded": training(TransformerAttention, *sizes)}
    return {"transformers": training(lambda: Bert(preset), *sizes)}
