"""Token ids of every published family on the 4000 texts of pieces.json ("more"), which hold characters of every block of
Unicode: a checksum for each ten texts. The vocabularies are those of the other scripts.

Run with sentencepiece 0.2, transformers 5 and tokenizers 0.23 from this folder, after make_wordpiece.py, make_byte_bpe.py,
make_big_bird_pieces.py and make_pieces.py: python make_more_ids.py
"""

import json
import tempfile
from pathlib import Path

import sentencepiece
from tokenizers import AddedToken, Tokenizer
from transformers import BertTokenizer, MarianTokenizer, MPNetTokenizer, RobertaTokenizer

from make_pieces import MODEL, checksum

GROUP = 10


def tokenizers():
    """Family -> function from a text to its ids without marks around it."""

    def plain(tokenizer):
        return lambda text: tokenizer(text, add_special_tokens=False)["input_ids"]

    words = {token: i for i, token in enumerate(Path("wordpiece_vocab.txt").read_text(encoding="utf-8").split("\n")[:-1])}
    yield "bert", plain(BertTokenizer(vocab=words))
    yield "bert_cased", plain(BertTokenizer(vocab=words, do_lower_case=False))
    bpe = json.loads(Path("byte_bpe.json").read_text())
    mask = AddedToken("<mask>", lstrip=True, special=True)
    merges = [tuple(merge) for merge in bpe["merges"]]
    yield "roberta", plain(RobertaTokenizer(vocab=bpe["vocab"], merges=merges, mask_token=mask))
    pieces = json.loads(Path("pieces.json").read_text())
    yield "mpnet", plain(MPNetTokenizer(vocab={token: i for i, token in enumerate(pieces["mpnet"]["tokens"])}))
    with tempfile.TemporaryDirectory() as name:
        vocabulary = {token: i for i, token in enumerate(pieces["marian"]["tokens"])}
        (Path(name) / "vocab.json").write_text(json.dumps(vocabulary))
        for file in ("source.spm", "target.spm"):
            (Path(name) / file).write_bytes(Path(MODEL).read_bytes())
        marian = MarianTokenizer.from_pretrained(name)
    yield "marian", plain(marian)
    big_bird = json.loads(Path("big_bird_pieces.json").read_text())["tokenizer"]
    fast = Tokenizer.from_str(json.dumps(big_bird))
    yield "big_bird", lambda text: fast.encode(text, add_special_tokens=False).ids
    library = sentencepiece.SentencePieceProcessor(model_file="big_bird.model")
    # Marks in a text are cut out before the library sees it; texts with them are left out here.
    yield "big_bird_library", lambda text: [] if "[" in text or "<" in text else library.encode(text)


def main():
    texts = json.loads(Path("pieces.json").read_text())["more"]
    result = {}
    for family, ids_of in tokenizers():
        ids = [ids_of(text) for text in texts]
        # A length before each list: ids cannot wander from one text to the next.
        result[family] = [checksum([n for line in ids[i : i + GROUP] for n in (len(line), *line)])
                          for i in range(0, len(texts), GROUP)]  # fmt: skip
    with open("more_ids.json", "w") as file:
        json.dump(result, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
