"""Golden values of XLM-RoBERTa and MPNet, made as make_bert.py makes those of BERT.

Run with transformers 5 and PyTorch 2.13 from this folder: python make_encoders.py
"""

from transformers import (
    MPNetConfig,
    MPNetForMaskedLM,
    MPNetForSequenceClassification,
    MPNetModel,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
    XLMRobertaForSequenceClassification,
)

import make_bert
from make_bert import BERT


def cases():
    roberta = {**BERT, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "pad_token_id": 1}
    yield XLMRobertaForMaskedLM, XLMRobertaConfig(**roberta)
    yield XLMRobertaForSequenceClassification, XLMRobertaConfig(**roberta, num_labels=3)
    yield MPNetModel, MPNetConfig(**BERT, pad_token_id=1)
    yield MPNetForMaskedLM, MPNetConfig(**BERT, pad_token_id=1)
    yield MPNetForSequenceClassification, MPNetConfig(**BERT, pad_token_id=1, num_labels=3)


if __name__ == "__main__":
    make_bert.PAD |= {"xlm-roberta": 1, "mpnet": 1}
    make_bert.main(cases(), "encoders")
