"""Makes metrics.json: BLEU and chrF of made-up hypotheses, as sacreBLEU gives them.

Needs sacrebleu==2.6.0 from PyPI. Run: python tests/golden/make_metrics.py
"""

import json
import pathlib
import random

import sacrebleu
from sacrebleu.metrics import BLEU, CHRF

assert sacrebleu.__version__ == "2.6.0", sacrebleu.__version__

CASES = {
    "english": (
        ["The cat sat on the mat.", "A quick brown fox, they say, jumps over the lazy dog!", "It costs $3.50 (or 1,000-2,000 yen).",
         "He said: \"I'll be back\" & left.", "no match here at all", "The the the the the."],
        [["The cat is sitting on the mat.", "The quick brown fox, as they say, jumped over a lazy dog!", "It costs $3.50 (or 1,000 - 2,000 yen).",
          "He said, \"I'll be back\", and left.", "something entirely different", "The cat is on the mat."]],
    ),
    "empty lines": (
        ["", "a b c d", "", "the end of the world", "   ", "\t"],
        [["a sentence that was not translated", "", "", "the end of the whole world", "x", "   "]],
    ),
    "nothing but empty": (["", " "], [["", ""]]),
    "empty hypotheses": (["", ""], [["a b c", "d"]]),
    "no word in common": (["a b c d e", "f g"], [["v w x y z", "u t"]]),
    "one word": (["hello"], [["hello"]]),
    "three words": (["hello there you"], [["hello there you"]]),
    "perfect": (["this is a perfect translation of it", "and so is this one ."],
                [["this is a perfect translation of it", "and so is this one ."]]),
    "smoothing": (["the house is x green", "y of z"], [["the house was very green", "q of r"]]),
    "two references": (
        ["It is a guide to action which ensures that the military always obeys the commands of the party .",
         "he read the book because he was interested in world history", "", "the the the the", "on the table there is a cup (of tea)."],
        [["It is a guide to action that ensures that the military will forever heed Party commands .",
          "he was interested in world history because he read the book", "not empty", "the cat is on the mat",
          "There is a cup (of tea) on the table."],
         ["It is the guiding principle which guarantees the military forces always being under the command of the Party .",
          "because of his interest in world history, he read the book", "", "there is a cat on the mat the the",
          "a cup of tea stands on the table (there)."],
         ["", "he read it", "some", "the", "on the table there is tea"]],
    ),
    "chinese": (
        ["我喜欢食物。", "他昨天买了3本书,花了12.5元！", "这是GPT-4写的“引文”（括号）。", "", "今天天气很好", "㐀㐁是扩展字𠀀𠀁", "全角ＡＢＣ１２３，标点、符号…—"],
        [["我爱吃食物。", "昨天他买了三本书，花了12.5元!", "这是由GPT-4写的“引用”（括号）。", "空行", "今天的天气很好。", "㐀㐁也是扩展字𠀀𠀂", "全角ABC123，标点，符号……—"]],
    ),
    "chinese, two references": (
        ["我今天 去了 北京 的 故宫", "你好,世界"],
        [["今天我去了北京故宫", "世界，你好"], ["我今天去了故宫（北京）", "你好，世界！"]],
    ),
    "letters and case": (
        ["ΟΔΥΣΣΕΥΣ ΣΑΣ Σ ΑΣ.", "İstanbul'da IŞIK", "ÀÉÎÕÜ straße STRASSE", "ДОБРЫЙ день, Мир", "ǅ Ǆ ǆ ﬁ FI", "Ω K Å"],
        [["οδυσσευς σας σ ας.", "istanbul'da ışık", "àéîõü STRASSE straße", "добрый ДЕНЬ, мир", "ǆ ǆ ǆ fi fi", "ω k å"]],
    ),
    "punctuation": (
        ["a,b.c 1,2.3 .5 5. 5.a a.5 ...,,,", "x-y 3-y 3--4 -5 --", "<skipped>&quot;a&quot; &amp;lt; &lt;b&gt; &amp;quot;", "{a}[b]`c~d|e^f_g\\h", "#1 @2 %3 $4 *5 +6 =7 ?8 ;9 !0 /", "don't can't 'quoted' (hi) (hi). \"so\"", "U.S.A., 3.14,15", "é.é,é 1é.2"],
        [["a , b . c 1,2.3 . 5 5 . 5 . a a.5 . . . , , ,", "x-y 3 -y 3- -4 - 5 - -", "\"a\" &lt; <b> &quot;", "{ a } [ b ] ` c ~ d | e ^ f _ g \\ h", "# 1 @ 2 % 3 $ 4 * 5 + 6 = 7 ? 8 ; 9 ! 0 /", "do n't can 't ' quoted ' ( hi ) ( hi ) . \" so \"", "U.S.A. , 3.14 , 15", "é. é, é 1é .2"]],
    ),
    "white space": (
        ["a\u00a0b\u3000c\u2009d\u200be  f", " lead and trail \u00a0", "tab\tand\x0bvertical\x1cfile\x85next\u2028line"],
        [["a b c d e f", "lead and trail", "tab and vertical file next line"]],
    ),
    "rare characters": (["𝒜 🙂🙂 👩‍👩‍👧 ｶﾞ 가", "\ufffd \ufeffa"], [["𝒜 🙂 👩‍👩‍👧 ガ 가", "\ufffd a"]]),
}


def random_case(seed, references):
    rng = random.Random(seed)
    words = ("the a of to in on cat dog house tree, runs. walks (fast) \"now\" 3.5 1,000 2-3 it's & ! ? 我 喜欢 食物 。 ， é Über ΣΑΣ . , ; — … GPT-4 U.S. ").split()
    weights = [1 / (i + 2) for i in range(len(words))]
    sentence = lambda: rng.choices(words, weights, k=rng.choice([0, 1, 2, 3, 5, 8, 13, 21]))

    def spoil(tokens):
        kept = [w if rng.random() > 0.2 else rng.choice(words) for w in tokens if rng.random() > 0.1]
        if len(kept) > 3 and rng.random() < 0.3:
            i = rng.randrange(len(kept) - 1)
            kept[i], kept[i + 1] = kept[i + 1], kept[i]
        return rng.choice(["", " "]).join(kept) if rng.random() < 0.2 else " ".join(kept)

    truth = [sentence() for _ in range(40)]
    return [spoil(t) for t in truth], [[spoil(t) for t in truth] for _ in range(references)]


for seed in range(6):
    CASES[f"random {seed}"] = random_case(seed, 1 + seed % 3)


def bleu(hypotheses, references, tokenize, lowercase):
    metric = BLEU(tokenize=tokenize, lowercase=lowercase, force=True)
    result = metric.corpus_score(hypotheses, references)
    signature = metric.get_signature().format()
    return {"tokenize": tokenize, "lowercase": lowercase, "score": result.score, "precisions": result.precisions,
            "counts": result.counts, "totals": result.totals, "bp": result.bp, "sys_len": result.sys_len,
            "ref_len": result.ref_len, "signature": signature,
            "line": result.format(width=1, signature=signature)}


def chrf(hypotheses, references, word_order, lowercase):
    metric = CHRF(word_order=word_order, lowercase=lowercase)
    result = metric.corpus_score(hypotheses, references)
    signature = metric.get_signature().format()
    return {"word_order": word_order, "lowercase": lowercase, "score": result.score, "name": result.name,
            "signature": signature, "line": result.format(width=1, signature=signature)}


cases = [{"name": name, "hypotheses": hypotheses, "references": references,
          "bleu": [bleu(hypotheses, references, tokenize, lowercase)
                   for tokenize in ("13a", "zh", "char", "none") for lowercase in (False, True)],
          "chrf": [chrf(hypotheses, references, word_order, lowercase)
                   for word_order in (0, 2) for lowercase in (False, True)]}
         for name, (hypotheses, references) in CASES.items()]
path = pathlib.Path(__file__).parent / "metrics.json"
lines = ",\n".join(json.dumps(case, ensure_ascii=False) for case in cases)
path.write_text(f'{{"sacrebleu": "{sacrebleu.__version__}", "cases": [\n{lines}]}}\n')
print(f"{path}: {len(cases)} cases")
