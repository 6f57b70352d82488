"""Golden token ids of SentencePiece models that others have trained: a small unigram model with the character
replacements that most published models have (nmt_nfkc), read

- by the SentencePiece library itself, with the ids of XLM-RoBERTa's sentencepiece.bpe.model,
- by Hugging Face's `tokenizers` from the tokenizer.json that transformers makes of it,
- as source.spm of a MarianTokenizer, with ids from vocab.json.

Of the texts written by hand all ids are kept; of thousands of others a checksum of each list of ids.

Run with sentencepiece 0.2, transformers 5 and tokenizers 0.23 from this folder: python make_pieces.py
"""

import base64
import json
import random
import re
import tempfile
import unicodedata
from pathlib import Path

import sentencepiece
from transformers import MarianTokenizer, MPNetTokenizer, XLMRobertaTokenizer

from make_wordpiece import PAIRS, TEXTS, vocabulary

MODEL = "pieces.model"
LINES = """the quick brown fox jumps over the lazy dog and runs into the forest
a small green house stands near the river where children play every morning
she sells sea shells on the sea shore but nobody buys them in winter
attention is all you need to translate a sentence from one language to another
der schnelle braune Fuchs springt über den faulen Hund und läuft in den Wald
ein kleines grünes Haus steht am Fluss wo jeden Morgen Kinder spielen
die Aufmerksamkeit hilft beim Übersetzen langer Sätze in eine andere Sprache
le renard brun saute par-dessus le chien paresseux et l'été arrive à Zürich
un café et une crème brûlée, s'il vous plaît, dit le garçon naïf
我喜欢吃中国的食物 他们在学校里学习汉语和英语
日本語の文章をかなとカナで書く 今日は天気がいいです
한국어 문장을 번역하는 모델 오늘은 날씨가 좋습니다
Привет, мир! Как дела? Сегодня хорошая погода в Москве
Καλημέρα κόσμε, η προσοχή είναι το μόνο που χρειάζεσαι
مرحبا بالعالم كيف حالك اليوم
नमस्ते दुनिया आज मौसम अच्छा है
ภาษาไทยไม่มีช่องว่างระหว่างคำ
100 000 dollars, 3.14 km/h, 50% of $20 (or €5) in 2024: "yes" - 'no'!
e-mail me@mail.co.uk or see http://www.test.com/a?b=c&d=e#f ... 🙂 😀""".split("\n")


def train():
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES * 4),
        model_prefix="pieces",
        model_type="unigram",
        vocab_size=700,
        hard_vocab_limit=False,
        character_coverage=0.999,
        normalization_rule_name="nmt_nfkc",
        num_threads=1,
        minloglevel=2,
    )
    Path("pieces.vocab").unlink()


def random_texts(count):
    """Words of the lines and of the hard texts, and characters of every block of Unicode, glued together."""
    rng = random.Random(17)
    blocks = [(start, start + 0x80) for start in range(0, 0x3400, 0x80)]
    blocks += [(0x4E00, 0x4F00), (0xA000, 0xA4D0), (0xAC00, 0xAD00), (0xE000, 0xE010), (0xF900, 0xFB00)]
    blocks += [(start, start + 0x80) for start in range(0xFB00, 0x10000, 0x80)]
    blocks += [(start, start + 0x100) for start in range(0x10000, 0x20000, 0x400)]
    words = " ".join(TEXTS).split(" ") + " ".join(LINES).split(" ")
    for i in range(count):
        parts = []
        for _ in range(rng.randint(1, 6)):
            kind = rng.random()
            if kind < 0.5:
                parts.append(rng.choice(words)[:30])
            else:
                low, high = blocks[i % len(blocks)] if kind < 0.8 else rng.choice(blocks)
                for _ in range(rng.randint(1, 4)):
                    c = chr(rng.randrange(low, high))
                    if not "\ud800" <= c <= "\udfff":
                        parts.append(c)
            parts.append(rng.choice(["", "", " ", " ", "  ", "\t", "\u3000", "\u0301", "<mask>", "</s>"][:9]))
        yield "".join(parts)


def checksum(ids):
    """FNV-1a of the numbers."""
    value = 0xCBF29CE484222325
    for number in ids:
        value = ((value ^ number) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value >> 32


def by_library(model, text):
    """As XLM-RoBERTa numbers them: <s> <pad> </s> <unk>, the pieces from the fourth on, <mask>."""
    marks = {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3, "<mask>": model.get_piece_size() + 1}
    ids = []
    for part in re.split(r"(<s>|<pad>|</s>|<unk>|\s*<mask>)", text):
        if part.strip() in marks and (part.strip() == "<mask>" or part in marks):
            ids.append(marks[part.strip()])
        else:
            ids += [{0: 3, 1: 0, 2: 2}.get(i, i + 1) for i in model.encode(part)]
    return ids


def marian(folder, model):
    pieces = [model.id_to_piece(i) for i in range(model.get_piece_size())]
    # Another order than the model's, some pieces missing, languages to translate to.
    kept = [piece for i, piece in enumerate(sorted(pieces)) if i % 11 != 3 and not piece.startswith("<")]
    tokens = ["</s>", "<unk>"] + kept + [">>deu<<", ">>fra<<", ">>cmn_Hans<<", "<pad>"]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(tokens)}))
    for name in ("source.spm", "target.spm"):
        (folder / name).write_bytes(Path(MODEL).read_bytes())
    tokenizer = MarianTokenizer.from_pretrained(folder)
    texts = TEXTS + [">>fra<< the dog", ">>fra<<the dog", ">>xxx<< the", " >>fra<< the", ">>fra the", "the </s> dog"]
    texts += [">>", "<<>>", ">>deu<<", ">>deu<<>>fra<<x"]
    ids = [tokenizer(text, add_special_tokens=False).input_ids for text in texts]
    decoded = [tokenizer.decode(list(i), skip_special_tokens=True) for i in ids]
    return {"tokens": tokens, "texts": texts, "ids": ids, "decoded": decoded}


def mpnet():
    replaced = {"[CLS]": "<s>", "[SEP]": "</s>", "[PAD]": "<pad>", "[MASK]": "<mask>"}
    tokens = [replaced.get(token, token) for token in vocabulary()]
    tokenizer = MPNetTokenizer(vocab={token: i for i, token in enumerate(tokens)})
    texts = TEXTS + ["the <mask> dog", "the   <mask>dog", "<s></s>", "<mask>"]
    return {
        "tokens": tokens,
        "texts": texts,
        "ids": [tokenizer(text, add_special_tokens=False).input_ids for text in texts],
        "pairs": [[a, b, tokenizer(a, b).input_ids] for a, b in PAIRS],
    }


def main():
    train()
    model = sentencepiece.SentencePieceProcessor(model_file=MODEL)
    texts = TEXTS + LINES + ["the <mask> dog", "the  <mask>dog", "a<s>b</s>c<pad>d<unk>e", "<mask>", "▁x ▁▁y z▁w"]
    texts += ["\r\n a\r\nb ", "Ａ\u0301 ﬁ\u0301 ｶﾞ\u0301", "‏عربي‏", "\u0e33\u0e33", "각\u11a8", "🇫🇷🇩 👩🏽‍🚀"]
    more = list(random_texts(4000))
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "sentencepiece.bpe.model").write_bytes(Path(MODEL).read_bytes())
        fast = XLMRobertaTokenizer.from_pretrained(folder)
        fast.save_pretrained(folder / "out")
        saved = json.loads((folder / "out" / "tokenizer.json").read_text())
        table = saved["normalizer"]["precompiled_charsmap"]
        assert base64.b64decode(table) in Path(MODEL).read_bytes()
        saved["normalizer"]["precompiled_charsmap"] = "@"  # the model's own
        golden = {
            "unicode": unicodedata.unidata_version,
            "texts": texts,
            "library": [by_library(model, text) for text in texts],
            "tokenizers": [fast(text, add_special_tokens=False).input_ids for text in texts],
            "pairs": [[a, b, fast(a, b).input_ids] for a, b in PAIRS],
            "more": more,
            "more_library": [checksum(by_library(model, text)) for text in more],
            "more_tokenizers": [checksum(fast(text, add_special_tokens=False).input_ids) for text in more],
            "tokenizer_json": saved,
        }
    with tempfile.TemporaryDirectory() as name:
        golden["marian"] = marian(Path(name), model)
    golden["mpnet"] = mpnet()
    with open("pieces.json", "w") as file:
        json.dump(golden, file, ensure_ascii=False, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
