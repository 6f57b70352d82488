"""Golden token ids of Hugging Face's RobertaTokenizer: a small vocabulary learnt here, the hard texts of
make_wordpiece.py, and what becomes of every character of Unicode.

Run with transformers 5 and tokenizers 0.23 from this folder: python make_byte_bpe.py
"""

import json

from tokenizers import AddedToken, ByteLevelBPETokenizer
from transformers import RobertaTokenizer

from make_wordpiece import LIMITS, PAIRS, TEXTS, WORDS, random_texts

MARKS = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
MORE = [
    "Paris is the <mask> of France.",
    "  <mask>  \t<mask> x<mask>y <s></s><pad><unk> <mask",
    "I'll he'd we're THEY'VE it's'S 'tis ''s don''t",
    "a  b   c \n\n d\t\te \u3000f \u00a0 g",
    "trailing   ",
    "12345 abc123 x1y2 \u00b2\u00bd\u2167 \u0664\u0665",
    "attention" * 300,
]


def learn():
    tokenizer = ByteLevelBPETokenizer()
    corpus = TEXTS + [" ".join(WORDS)] * 5
    tokenizer.train_from_iterator(corpus, vocab_size=600, min_frequency=2, special_tokens=MARKS, show_progress=False)
    state = json.loads(tokenizer.to_str())
    merges = [tuple(merge) if isinstance(merge, list) else tuple(merge.split(" ")) for merge in state["model"]["merges"]]
    return state["model"]["vocab"], merges


def character_classes(vocab, merges):
    """Where "a" + character + "b" is cut: [first character, pieces before merging] wherever that changes."""
    tokenizer = RobertaTokenizer(vocab=vocab, merges=merges)
    cut = tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str
    changes = []
    for c in range(0x110000):
        if 0xD800 <= c < 0xE000:
            continue
        # A letter, a number, another sign and white space before it tell its kind.
        kind = "".join(str(len(cut(before + chr(c)))) for before in ("a", "1", "!", "\t\t"))
        if not changes or changes[-1][1] != kind:
            changes.append([c, kind])
    return changes


def main():
    vocab, merges = learn()
    mask = AddedToken("<mask>", lstrip=True, special=True)
    texts = TEXTS + MORE + list(random_texts(200))
    result = {"vocab": vocab, "merges": [list(merge) for merge in merges], "texts": texts, "settings": [], "pairs": []}
    for prefix_space in (False, True):
        tokenizer = RobertaTokenizer(vocab=vocab, merges=merges, mask_token=mask, add_prefix_space=prefix_space)
        ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        decoded = [tokenizer.backend_tokenizer.decode(line, skip_special_tokens=True) for line in ids]
        result["settings"].append({"prefix_space": prefix_space, "ids": ids, "decoded": decoded})
    tokenizer = RobertaTokenizer(vocab=vocab, merges=merges, mask_token=mask)
    for first, second in PAIRS:
        for limit in LIMITS:
            if limit and limit < 4:
                continue  # no room for the marks of a pair
            options = {"truncation": "longest_first", "max_length": limit} if limit else {}
            pair, one = tokenizer(first, second, **options), tokenizer(first, **options)
            result["pairs"].append(
                {"first": first, "second": second, "limit": limit or 0, "pair": pair["input_ids"], "one": one["input_ids"]}
            )
    result["classes"] = character_classes(vocab, merges)
    with open("byte_bpe.json", "w", encoding="utf-8") as file:
        json.dump(result, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
