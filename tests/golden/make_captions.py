"""Makes captions.json: BLEU-1 to BLEU-4 and CIDEr of made-up captions, as coco-caption's own scorers give them.

Needs a copy of github.com/salaniz/pycocoevalcap (coco-caption for Python 3). Run from this folder:
python make_captions.py FOLDER_OF_PYCOCOEVALCAP
"""

import json
import pathlib
import random
import sys

sys.path.insert(0, sys.argv[1] + "/bleu")
sys.path.insert(0, sys.argv[1] + "/cider")
from bleu_scorer import BleuScorer  # noqa: E402
from cider_scorer import CiderScorer  # noqa: E402

WORDS = ("a the man woman dog child ball snow water red blue brown white runs jumps plays stands sits in on with near "
         "two young small through grass beach street").split()


def made_up(rng, least, most):
    return " ".join(rng.choice(WORDS) for _ in range(rng.randint(least, most)))


def near(rng, caption):
    """The caption with some words replaced, dropped and repeated."""
    words = []
    for word in caption.split():
        draw = rng.random()
        if draw < 0.15:
            continue
        words.append(rng.choice(WORDS) if draw < 0.35 else word)
        if draw > 0.95:
            words.append(word)
    return " ".join(words) or "a"


def case(name, hypotheses, references):
    bleu, cider = BleuScorer(n=4), CiderScorer(n=4, sigma=6.0)
    for i, hypothesis in enumerate(hypotheses):
        of_picture = [reference[i] for reference in references]
        bleu += (hypothesis, of_picture)
        cider += (hypothesis, of_picture)
    with_penalty, _ = bleu.compute_score(option="closest")
    ratio = bleu._testlen / max(1, bleu._reflen)
    return {"name": name, "hypotheses": hypotheses, "references": references, "bleu": with_penalty,
            "ratio": ratio, "cider": cider.compute_score()[0]}


rng = random.Random(1)
cases = []
for pictures, sets, shorter in ((12, 5, 0), (40, 5, 3), (7, 1, 0), (25, 3, -4), (2, 2, 0)):
    truth = [made_up(rng, 5, 14) for _ in range(pictures)]
    references = [[near(rng, caption) for caption in truth] for _ in range(sets)]
    hypotheses = [near(rng, caption) for caption in truth]
    if shorter > 0:
        hypotheses = [" ".join(caption.split()[:max(1, len(caption.split()) - shorter)]) for caption in hypotheses]
    if shorter < 0:
        hypotheses = [caption + " " + made_up(rng, 1, -shorter) for caption in hypotheses]
    cases.append(case(f"{pictures} pictures, {sets} references, {shorter}", hypotheses, references))
# One caption has four words: coco-caption's BLEU-4 of captions without any 4-gram is not 0 but a rounding constant.
cases.append(case("short captions", ["a dog", "snow", "a man runs fast"], [["a dog runs", "snow", "the man"],
                                                                           ["the dog", "white snow", "a man runs fast"]]))
pathlib.Path("captions.json").write_text(json.dumps(cases, indent=1) + "\n")
