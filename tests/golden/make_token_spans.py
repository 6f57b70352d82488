"""Golden character offsets of Hugging Face's BertTokenizer and RobertaTokenizer on the hard texts of
make_wordpiece.py and make_byte_bpe.py, with the vocabularies that those scripts made.

Run with transformers 5 and tokenizers 0.23 from this folder: python make_token_spans.py
"""

import json

from tokenizers import AddedToken
from transformers import BertTokenizer, RobertaTokenizer

from make_byte_bpe import MORE
from make_wordpiece import TEXTS, random_texts


def offsets(tokenizer, texts):
    found = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return [[list(span) for span in line] for line in found]


def main():
    with open("wordpiece_vocab.txt", encoding="utf-8", newline="\n") as file:
        vocab = {token: i for i, token in enumerate(file.read().split("\n")[:-1])}
    with open("byte_bpe.json", encoding="utf-8") as file:
        learnt = json.load(file)
    merges = [tuple(merge) for merge in learnt["merges"]]
    mask = AddedToken("<mask>", lstrip=True, special=True)
    texts = [text for text in TEXTS + MORE if len(text) < 400] + list(random_texts(60))
    result = {"texts": texts}
    result["uncased"] = offsets(BertTokenizer(vocab=vocab), texts)
    result["cased"] = offsets(BertTokenizer(vocab=vocab, do_lower_case=False), texts)
    for name, prefix_space in (("bytes", False), ("spaced_bytes", True)):
        tokenizer = RobertaTokenizer(vocab=learnt["vocab"], merges=merges, mask_token=mask, add_prefix_space=prefix_space)
        result[name] = offsets(tokenizer, texts)
    with open("token_spans.json", "w", encoding="utf-8") as file:
        json.dump(result, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
