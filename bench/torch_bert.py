"""transformers' side of pre-training: a step of BertForPreTraining, which computes the logits of every place."""

import torch
from transformers import BertConfig, BertForPreTraining

PAIRS, LENGTH, MASKED = 64, 128, 20


def pretraining():
    def build(wrap):
        config = BertConfig(hidden_size=256, num_hidden_layers=4, num_attention_heads=4, intermediate_size=1024)
        network = BertForPreTraining(config).train()
        model = wrap(network)
        decayed = [p for p in network.parameters() if p.dim() > 1]
        others = [p for p in network.parameters() if p.dim() < 2]
        groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
        optimizer = torch.optim.AdamW(groups, lr=1e-4, eps=1e-6)
        ids = torch.randint(config.vocab_size, (PAIRS, LENGTH))
        types = (torch.arange(LENGTH) >= LENGTH // 2).long().expand(PAIRS, LENGTH)
        labels = torch.full((PAIRS, LENGTH), -100)
        labels[:, 1 : MASKED + 1] = torch.randint(config.vocab_size, (PAIRS, MASKED))
        follows = torch.arange(PAIRS) % 2

        def step():
            optimizer.zero_grad()
            model(ids, token_type_ids=types, labels=labels, next_sentence_label=follows).loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()

        return step

    return {"eager": lambda: build(lambda f: f), "compiled": lambda: build(torch.compile)}
