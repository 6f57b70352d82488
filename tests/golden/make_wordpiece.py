"""Golden token ids of Hugging Face's BertTokenizer: a small vocabulary, texts that are hard to cut, and what
becomes of every character of Unicode.

Run with transformers 5 and tokenizers 0.23 from this folder: python make_wordpiece.py
"""

import json
import random
import string

from transformers import BertTokenizer

SETTINGS = [
    {},
    {"do_lower_case": False},
    {"do_lower_case": False, "strip_accents": True},
    {"do_lower_case": True, "strip_accents": False},
    {"tokenize_chinese_chars": False},
    {"do_lower_case": False, "tokenize_chinese_chars": False},
]

WORDS = """the quick brown fox jump over lazy dog a an is was were be been un aff able believ ing ed ly est er re
pre play read write attention token iz ation masked paris france capital of in on at by he she it they we you i am
do not can will what where why how much many one two three naive cafe resume uber strasse istanbul zoe garcon
hello world test http www com co uk e mail 2024 100 000 3 14 km usd mc donald 's 'm n't 've don won isn""".split()


def vocabulary():
    tokens = ["[PAD]", "[unused0]", "[UNK]"]  # marks need not come first
    tokens += sorted(set(WORDS))
    tokens += [c for c in string.printable if c.strip()]
    tokens += ["##" + c for c in string.ascii_letters + string.digits]
    tokens += ["[CLS]", "[SEP]", "[MASK]"]
    tokens += ["##" + w for w in "able ing ed ly est er iz ation ness ment ful s es ab cd the at on".split()]
    for c in "éèüöäßñçøåæœğışžčřİÉÜÄÇØΑΒΓΣαβγσςωЖжДдИиёйЙأبتथदनکی":
        tokens += [c, "##" + c]
    for c in "中国人我爱你食物日本語かなカナ한국어ᄒ豈":
        tokens += [c, "##" + c]
    tokens += ["中国", "##人民", "カナ", "##語"]
    tokens += ["。", "，", "、", "！", "？", "「", "」", "…", "—", "–", "“", "”", "‘", "’", "¿", "¡", "«", "»", "§"]
    tokens += ["🙂", "##🙂", "😀", "👩", "🏽", "🇫", "##🇷", "€", "£", "©", "™", "°", "½", "ﬁ", "Ⅷ", "ⅷ", "K", "å"]
    tokens += ["i̇", "##̇", "e", "##́", "क्", "##्"]
    unique = list(dict.fromkeys(tokens))
    # Long pieces, to be preferred to short ones.
    return unique + ["attentiontokenization", "##ization", "##tionable", "x" * 60, "##" + "x" * 90]


TEXTS = [
    "",
    " ",
    "\t\n\r ",
    "Hello, world!",
    "The quick brown fox jumps over the lazy dog.",
    "unaffable unbelievable readable playing PLAYED",
    "Paris is the [MASK] of France.",
    "[CLS] [SEP] [PAD] [UNK] [MASK] [unused0]",
    "[MASK][MASK]x[MASK]y",
    "[mask] [ MASK ] [MAS K] [[MASK]] [MASK",
    "don't won't isn't I'm you've he's",
    "C'est l'été à Zürich: naïve café, résumé, señor, garçon, Ångström, Øresund, Straße",
    "İstanbul ıssız IĞDIR İİ",
    "ΑΒΓΣ Σίσυφος ΟΔΟΣ ὈΔΥΣΣΕΎΣ",
    "Жёлтый ДЙ ёй Йод",
    "我爱你中国，日本語かなカナ。한국어 豈",
    "中国人民abc中x国123",
    "ｆｕｌｌｗｉｄｔｈ　ＦＯＲＭＳ１２３！",
    "e\u0301 e\u0301\u0327 \u0301 a\u0300\u0301\u0302 A\u030a",
    "\u1e9b\u0323 \u212b \u2126 \ufb01 \u2167 \u00bd \u212a",
    "क्षत्रिय हिन्दी नमस्ते",
    "العربية أَبَت فارسی کی",
    "עִבְרִית שָׁלוֹם",
    "ไทย ภาษาไทย",
    "Tiếng Việt đẹp",
    "🙂 😀🙂 👩🏽‍🚀 🇫🇷 🏴‍☠️ 🫠 🪿",
    "zero\u200bwidth\u200djoiner\u200cnon\ufeffbom\u00adsoft\u2060word",
    "a\u0000b\u0001c\u0007d\u001be\u007ff\u0080g\u0085h\u009fi",
    "a\u001cb\u001dc\u001ed\u001fe\u000bf\u000cg",
    "nbsp\u00a0en\u2002em\u2003thin\u2009ideographic\u3000line\u2028para\u2029mongolian\u180eogham\u1680",
    "\ufffd replaced \ufffdtext\ufffd",
    "private \ue000\uf8ff use \U000f0000 plane",
    "unassigned \u0378 \U0001fffe later \u1885 \ua9bd \u1734 \u166d \U000111c9 \u2e43 \u08d4 \U00011938",
    "noncharacter \uffff \ufdd0",
    "...!!!???,,,;;;:::",
    "(a)[b]{c}<d>/e\\f|g`h~i@j#k$l%m^n&o*p-q_r=s+t",
    "$100,000.00 3.14 €5 £6 50% 20°C ½ km/h 1e-12",
    "http://www.test.com/a?b=c&d=e#f me@mail.co.uk",
    "“quoted” ‘single’ «french» „german‟ 「日本」 —em–en…",
    "¿Qué? ¡No! § ¶ © ® ™ † ‡ •",
    "attention attentiontoken attentiontokenization attentiontokenizations",
    "x" * 59,
    "x" * 60,
    "x" * 61,
    "x" * 99,
    "x" * 100,
    "x" * 101,
    "x" * 1000,
    "é" * 100,
    "é" * 101,
    "e\u0301" * 100,
    "中" * 150,
    "a" + "\u0301" * 200,
    "ab" * 50 + " " + "ab" * 51,
    "q" * 50 + "Ж" + "q" * 49,
    "." * 300,
    "##ing ##the # #ing the##ing",
    "the  quick\t\tbrown\n\nfox\r\njumps",
    " leading and trailing ",
    "MiXeD cAsE WoRdS",
    "McDonald's co-operate e-mail re-read",
    "tab\tnew\nline\rreturn",
    "ﬀ ﬁ ﬂ ﬃ ﬄ ĳ ǆ Ǆ",
    "ẞ ß SS ss ſ",
    "\U0001d400\U0001d401 \U0001d504 \U00020000\U0002a6df \U0002b740 \U0002b820 \U0002b91f \U0002b920 \U0002f800",
    "한국어 \u1112\u1161\u11ab 각 ㄱ",
    "か\u3099 が ガ ｶﾞ カ\u309a",
    "\u0f73 \u0f75 \u0344 \u2adc",
]

PAIRS = [
    ("the quick brown fox", "over the lazy dog"),
    ("", "the"),
    ("one two three one two three one two three", "the"),
    ("the", "one two three one two three one two three"),
    ("one two three four", "one two three four"),
    ("one two three", "one two three four"),
    ("one two three four", "one two three"),
    ("the [SEP] dog", "a [MASK]"),
]
LIMITS = [None, 3, 4, 5, 6, 7, 8, 9, 10, 20]


def random_texts(count):
    """Pieces of the texts above, and characters from everywhere, glued together."""
    rng = random.Random(5)
    ranges = [(0x20, 0x7F), (0x20, 0x7F), (0x80, 0x250), (0x300, 0x370), (0x370, 0x600), (0x900, 0xE00)]
    ranges += [(0x1E00, 0x2000), (0x2000, 0x2070), (0x3000, 0x3100), (0x4E00, 0x4F00), (0xAC00, 0xAD00)]
    ranges += [(0x1F300, 0x1F650), (0x0, 0x20), (0xFE00, 0x10000)]
    words = " ".join(TEXTS).split(" ")
    for _ in range(count):
        parts = []
        for _ in range(rng.randint(1, 12)):
            if rng.random() < 0.6:
                word = rng.choice(words)
                parts.append(word[: rng.randint(1, 20)])
            else:
                low, high = rng.choice(ranges)
                parts.append("".join(chr(rng.randrange(low, high)) for _ in range(rng.randint(1, 4))))
        yield rng.choice(["", " "]).join(parts)


def character_classes():
    """What becomes of "a" + character + "b": [first character, class] wherever the class changes."""
    tokenizer = BertTokenizer(vocab={"[UNK]": 0, "ab": 1, "a": 2, "b": 3, "[CLS]": 4, "[SEP]": 5})
    classes = {(1,): "gone", (2, 3): "space", (2, 0, 3): "apart", (0,): "letter"}
    changes = []
    for begin in range(0, 0x110000, 0x1000):
        places = [c for c in range(begin, begin + 0x1000) if not 0xD800 <= c < 0xE000]
        texts = ["a" + chr(c) + "b" for c in places]
        for c, ids in zip(places, tokenizer(texts, add_special_tokens=False)["input_ids"] if texts else []):
            kind = classes.get(tuple(ids), "letter")  # an "a" or "b" cut off a word that has other letters
            if not changes or changes[-1][1] != kind:
                changes.append([c, kind])
    return changes


def main():
    tokens = vocabulary()
    with open("wordpiece_vocab.txt", "w", encoding="utf-8", newline="\n") as file:
        file.writelines(token + "\n" for token in tokens)
    vocab = {token: i for i, token in enumerate(tokens)}
    texts = TEXTS + list(random_texts(300))
    result = {"texts": texts, "settings": [], "pairs": []}
    for settings in SETTINGS:
        tokenizer = BertTokenizer(vocab=vocab, **settings)
        unknown = tokenizer.unk_token_id
        ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
        # Fovea shows unknown words; left out of both here.
        backend = tokenizer.backend_tokenizer
        decoded = [backend.decode([i for i in line if i != unknown], skip_special_tokens=True) for line in ids]
        result["settings"].append({"settings": settings, "ids": ids, "decoded": decoded})
    tokenizer = BertTokenizer(vocab=vocab)
    for first, second in PAIRS:
        for limit in LIMITS:
            options = {"truncation": "longest_first", "max_length": limit} if limit else {}
            pair = tokenizer(first, second, **options)
            one = tokenizer(first, **options)
            result["pairs"].append(
                {
                    "first": first,
                    "second": second,
                    "limit": limit or 0,
                    "pair": [pair["input_ids"], pair["token_type_ids"]],
                    "one": [one["input_ids"], one["token_type_ids"]],
                }
            )
    result["classes"] = character_classes()
    with open("wordpiece.json", "w", encoding="utf-8") as file:
        json.dump(result, file, separators=(",", ":"))
        file.write("\n")


if __name__ == "__main__":
    main()
