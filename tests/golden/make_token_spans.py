"""Golden character offsets of Hugging Face's BertTokenizer, RobertaTokenizer and XLMRobertaTokenizer on the hard texts of
make_wordpiece.py and make_byte_bpe.py, with the vocabularies that those scripts and make_pieces.py made.

Run with transformers 5 and tokenizers 0.23 from this folder: python make_token_spans.py
"""

import base64
import json
import unicodedata
from pathlib import Path

from tokenizers import AddedToken, Tokenizer
from transformers import BertTokenizer, RobertaTokenizer

from make_byte_bpe import MORE
from make_wordpiece import TEXTS, random_texts


def offsets(tokenizer, texts):
    found = tokenizer(texts, add_special_tokens=False, return_offsets_mapping=True)["offset_mapping"]
    return [[list(span) for span in line] for line in found]


def fields(message):
    """Numbers and contents of the fields of a protobuf message that hold bytes."""
    at = 0

    def number():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at, value, shift = at + 1, value | (byte & 127) << shift, shift + 7
            if byte < 128:
                return value

    while at < len(message):
        field, kind = divmod(number(), 8)
        if kind == 2:
            size = number()
            yield field, message[at : at + size]
            at += size
        elif kind == 0:
            number()
        else:
            at += {1: 8, 5: 4}[kind]


def unigram_offsets(texts):
    """From the tokenizer.json of make_pieces.py, without white space at their ends. A letter and the marks that were joined
    with it are one token; `tokenizers` counts the letter alone, here the marks are added."""
    with open("pieces.json", encoding="utf-8") as file:
        settings = json.load(file)["tokenizer_json"]
    normalizer = next(content for field, content in fields(Path("pieces.model").read_bytes()) if field == 3)
    table = next(content for field, content in fields(normalizer) if field == 2)
    settings["normalizer"]["precompiled_charsmap"] = base64.b64encode(table).decode()
    tokenizer = Tokenizer.from_str(json.dumps(settings))
    found = []
    for text in texts:
        spans = []
        offsets_of_text = tokenizer.encode(text, add_special_tokens=False).offsets
        counted = {place for begin, end in offsets_of_text for place in range(begin, end)}
        for begin, end in offsets_of_text:
            while begin < end < len(text) and end not in counted and unicodedata.category(text[end])[0] == "M":
                end += 1
            while begin < end and text[begin].isspace():
                begin += 1
            while begin < end and text[end - 1].isspace():
                end -= 1
            spans.append([begin, end])
        found.append(spans)
    return found


# Characters that are replaced, with their replacements further on in the text.
REPLACED = ["ＡＢ AB the", "ﬁne fine ①1 ①", "½ of 1⁄2", "ｶﾞ ガ café cafe\u0301", "Ⅷ VIII the ㌔ キロ", "…. ...", "the\u3000ﬂow flow"]


def main():
    with open("wordpiece_vocab.txt", encoding="utf-8", newline="\n") as file:
        vocab = {token: i for i, token in enumerate(file.read().split("\n")[:-1])}
    with open("byte_bpe.json", encoding="utf-8") as file:
        learnt = json.load(file)
    merges = [tuple(merge) for merge in learnt["merges"]]
    mask = AddedToken("<mask>", lstrip=True, special=True)
    texts = [text for text in TEXTS + MORE if len(text) < 400] + list(random_texts(60)) + REPLACED
    result = {"texts": texts}
    result["uncased"] = offsets(BertTokenizer(vocab=vocab), texts)
    result["cased"] = offsets(BertTokenizer(vocab=vocab, do_lower_case=False), texts)
    for name, prefix_space in (("bytes", False), ("spaced_bytes", True)):
        tokenizer = RobertaTokenizer(vocab=learnt["vocab"], merges=merges, mask_token=mask, add_prefix_space=prefix_space)
        result[name] = offsets(tokenizer, texts)
    result["unigram"] = unigram_offsets(texts)
    with open("token_spans.json", "w", encoding="utf-8") as file:
        json.dump(result, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
