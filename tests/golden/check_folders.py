"""Model folders through the program, against transformers and sentence-transformers.

For every family a small folder of random weights is made with transformers, and both answer the same texts: vectors,
probabilities, words for masked places, translations; cross-encoders also against sentence-transformers. Then Fovea trains it on
for a few steps or converts it, and saves it; transformers reads what was saved (no tensor missing, none left over), and
the answers are compared again.

Run with transformers 5, sentence-transformers 6 and PyTorch 2.13, naming the program:
    python tests/golden/check_folders.py build/release/fovea
"""

import io
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch
import transformers
from tokenizers import AddedToken
from transformers import (
    AutoModel,
    AutoModelForMaskedLM,
    AutoModelForPreTraining,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    BertConfig,
    BertForMaskedLM,
    BertForPreTraining,
    BertForSequenceClassification,
    BigBirdConfig,
    BigBirdForMaskedLM,
    BigBirdForSequenceClassification,
    DistilBertConfig,
    DistilBertForMaskedLM,
    LongformerConfig,
    LongformerForMaskedLM,
    MarianConfig,
    MarianMTModel,
    MPNetConfig,
    MPNetForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
    RobertaForSequenceClassification,
    XLMRobertaConfig,
    XLMRobertaForMaskedLM,
)

HERE = Path(__file__).resolve().parent
PROGRAM = str(Path(sys.argv[1]).resolve())
os.chdir(HERE)  # where the other scripts find their files
from make_byte_bpe import learn  # noqa: E402
from make_marian import SMALL, set_sinusoids  # noqa: E402
from make_pieces import LINES  # noqa: E402
from make_pieces import marian as write_marian_tokenizer  # noqa: E402
from make_wordpiece import vocabulary  # noqa: E402

TOLERANCE = 2e-5
SIZES = {
    "hidden_size": 24,
    "num_hidden_layers": 2,
    "num_attention_heads": 3,
    "intermediate_size": 40,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
}
DISTIL = {"dim": 24, "n_layers": 2, "n_heads": 3, "hidden_dim": 40}
TEXTS = [
    "a",
    "The quick brown fox jumps over the lazy dog.",
    "don't won't isn't I'm: naïve café, garçon",
    "我喜欢吃中国的食物 日本語の文章",
    "Привет мир 🙂 hello world",
    " ".join(["the quick brown fox is not a lazy dog"] * 8),  # longer than windows and than blocks allow full attention
]
# A pooler that transformers makes beside the head that is used.
NOT_READ = dict.fromkeys([BigBirdForMaskedLM, BigBirdForSequenceClassification], {"bert.pooler.weight", "bert.pooler.bias"})
PAIRS = [(TEXTS[i], TEXTS[(i + 1) % 5]) for i in range(5)]
LABELS = ["good", "bad", "so-so"]


def fovea(*arguments, lines=None):
    done = subprocess.run([PROGRAM, *map(str, arguments)], input="".join(line + "\n" for line in lines or []), text=True,
                          capture_output=True)
    assert done.returncode == 0, f"fovea {' '.join(map(str, arguments))}: {done.stderr.strip()}"
    return done.stdout


def agree(what, ours, theirs, tolerance=TOLERANCE):
    ours, theirs = np.asarray(ours, np.float64), np.asarray(theirs, np.float64)
    assert ours.shape == theirs.shape, f"{what}: shapes {ours.shape} and {theirs.shape}"
    scale = max(1.0, np.abs(theirs).max())
    assert np.abs(ours - theirs).max() <= tolerance * scale, f"{what}: differ by {np.abs(ours - theirs).max()}"


def read(auto, folder):
    """The model as transformers reads it, with nothing made up and nothing left over."""
    model, info = auto.from_pretrained(folder, output_loading_info=True)
    for kind, names in info.items():
        assert not set(names) - NOT_READ.get(type(model), set()), f"{folder.name}: {kind}: {names}"
    return model.eval()


def stirred(model):
    """Weights far from their beginnings, where biases matter too."""
    torch.manual_seed(len(list(model.parameters())))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
    return model


# Tokenizers, each as its family's files.


def write_wordpiece(folder):
    (folder / "vocab.txt").write_text("".join(token + "\n" for token in vocabulary()), encoding="utf-8")
    return len(vocabulary()), vocabulary().index("[PAD]")


def write_mpnet_wordpiece(folder):
    replaced = {"[CLS]": "<s>", "[SEP]": "</s>", "[PAD]": "<pad>", "[MASK]": "<mask>"}
    tokens = [replaced.get(token, token) for token in vocabulary()]
    # MPNet's embedding table has the padding in row 1.
    tokens[0], tokens[1] = tokens[1], tokens[0]
    transformers.MPNetTokenizer(vocab={token: i for i, token in enumerate(tokens)}).save_pretrained(folder)
    return len(tokens), 1


def write_byte_bpe(folder):
    vocab, merges = learn()
    mask = AddedToken("<mask>", lstrip=True, special=True)
    transformers.RobertaTokenizer(vocab=vocab, merges=merges, mask_token=mask).save_pretrained(folder)
    return len(vocab), vocab["<pad>"]


def write_pieces(folder):
    (folder / "sentencepiece.bpe.model").write_bytes((HERE / "pieces.model").read_bytes())
    tokenizer = transformers.XLMRobertaTokenizer.from_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return len(tokenizer), 1


def write_big_bird_pieces(folder):
    from make_big_bird_pieces import learn as learn_pieces

    proto = learn_pieces()
    (folder / "spiece.model").write_bytes(proto.SerializeToString())
    transformers.BigBirdTokenizer(vocab=[(piece.piece, 0.0) for piece in proto.pieces]).save_pretrained(folder)
    return len(proto.pieces), 0


def published(root, name, kind, config, write_tokenizer, **settings):
    """A folder as transformers writes it."""
    folder = root / name
    folder.mkdir()
    size, pad = write_tokenizer(folder)
    model = stirred(kind(config(vocab_size=size, pad_token_id=pad, **settings)))
    model.save_pretrained(folder)
    return folder


# What a folder answers, by Fovea and by transformers.


def tokenized(folder, *texts):
    return AutoTokenizer.from_pretrained(folder)(*texts, return_tensors="pt")


def check_embed(folder):
    done = subprocess.run([PROGRAM, "embed", folder, "--format", "npy"], input="".join(t + "\n" for t in TEXTS).encode(),
                          capture_output=True, check=True)
    ours = np.load(io.BytesIO(done.stdout))
    for text, row in zip(TEXTS, ours):
        model = AutoModel.from_pretrained(folder).eval()  # BigBird's attention changes with the texts it has seen
        with torch.no_grad():
            agree(f"{folder.name}: embed", row, model(**tokenized(folder, text)).last_hidden_state[0].mean(0))


def check_fill(folder, auto=AutoModelForMaskedLM):
    tokenizer, model = AutoTokenizer.from_pretrained(folder), read(auto, folder)
    text = f"the quick {tokenizer.mask_token} fox"
    ids = tokenizer(text, return_tensors="pt")
    with torch.no_grad():
        out = model(**ids)
    logits = out.prediction_logits if hasattr(out, "prediction_logits") else out.logits
    place = (ids["input_ids"][0] == tokenizer.mask_token_id).nonzero().item()
    best = logits[0, place].softmax(-1).topk(5)
    ours = json.loads(fovea("fill", folder, text, "--json"))["masks"][0]
    agree(f"{folder.name}: fill", [one["probability"] for one in ours], best.values)
    assert [one["id"] for one in ours] == best.indices.tolist(), f"{folder.name}: fill"


def check_classify(folder, pairs=False):
    lines = ["\t".join(pair) for pair in PAIRS] if pairs else TEXTS
    ours = [json.loads(line) for line in fovea("classify", folder, "--json", lines=lines).splitlines()]
    for line, one in zip(lines, ours):
        model = read(AutoModelForSequenceClassification, folder)
        with torch.no_grad():
            logits = model(**tokenized(folder, *line.split("\t"))).logits[0]
        if "value" in one:
            agree(f"{folder.name}: classify", [one["value"]], logits)
            continue
        several = model.config.problem_type == "multi_label_classification"
        theirs = logits.sigmoid() if several else logits.softmax(-1)
        names = [model.config.id2label[i] for i in range(model.config.num_labels)]
        agree(f"{folder.name}: classify", [one["probabilities"][name] for name in names], theirs)


def trained(folder, out, *options, rows=None):
    """What `fovea train classify --from` saves after a few steps."""
    table = folder.parent / "train.tsv"
    rows = rows or ["label\ttext"] + [f"{LABELS[i % 3]}\t{text}" for i, text in enumerate(TEXTS * 4)]
    table.write_text("".join(row + "\n" for row in rows), encoding="utf-8")
    fovea("train", "classify", "--from", folder, "--train", table, "--valid", table, "--out", out, "--steps", 4,
          "--learning-rate", "1e-3", *options)
    return out


def check_encoders(root):
    roberta = {**SIZES, "max_position_embeddings": 514, "type_vocab_size": 1, "layer_norm_eps": 1e-5}
    folders = [
        published(root, "bert", BertForMaskedLM, BertConfig, write_wordpiece, **SIZES),
        published(root, "distilbert", DistilBertForMaskedLM, DistilBertConfig, write_wordpiece, **DISTIL),
        published(root, "roberta", RobertaForMaskedLM, RobertaConfig, write_byte_bpe, **roberta),
        published(root, "xlm-roberta", XLMRobertaForMaskedLM, XLMRobertaConfig, write_pieces, **roberta),
        published(root, "mpnet", MPNetForMaskedLM, MPNetConfig, write_mpnet_wordpiece, **SIZES),
        published(root, "longformer", LongformerForMaskedLM, LongformerConfig, write_byte_bpe, **roberta,
                  attention_window=[4, 8]),
        published(root, "bigbird", BigBirdForMaskedLM, BigBirdConfig, write_big_bird_pieces, **SIZES, block_size=4,
                  num_random_blocks=1, max_position_embeddings=512),
    ]
    for folder in folders:
        check_embed(folder)
        check_fill(folder)
        saved = trained(folder, root / f"{folder.name}-labels")
        check_classify(saved)
        check_embed(saved)
        print(f"{folder.name}: embed, fill, train classify --from, classify", flush=True)


def check_heads(root):
    """Numbers, several labels and pairs."""
    bert = root / "bert"
    numbers = ["label\ttext"] + [f"{2.5 * len(text) - 30}\t{text}" for text in TEXTS * 4]
    check_classify(trained(bert, root / "bert-number", "--task", "regression", rows=numbers))
    several = ["label\ttext"] + [f"{'good,bad' if i % 2 else 'so-so'}\t{text}" for i, text in enumerate(TEXTS * 4)]
    check_classify(trained(bert, root / "bert-several", "--task", "multi_label", "--label-separator", ",", rows=several))
    pairs = ["label\tsentence1\tsentence2"] + [f"{LABELS[i % 3]}\t{a}\t{b}" for i, (a, b) in enumerate(PAIRS * 4)]
    for family in ("bert", "roberta", "xlm-roberta", "mpnet"):
        check_classify(trained(root / family, root / f"{family}-pairs", "--pairs", rows=pairs), pairs=True)
    print("classification heads: numbers, several labels, pairs", flush=True)


def check_converted(root):
    """Long models made of short ones read texts of the old length as the old ones did."""
    head = published(root, "roberta-head", RobertaForSequenceClassification, RobertaConfig, write_byte_bpe, **SIZES,
                     max_position_embeddings=66, num_labels=3)
    for name, to in (("bert", "longformer"), ("roberta", "longformer"), ("bert", "bigbird"), ("roberta", "bigbird")):
        out = root / f"{name}-{to}"
        fovea("convert", root / name, "--to", to, "--max-tokens", 1024, "--out", out)
        check_embed(out)
        check_fill(out)
        print(f"convert {name} --to {to}: embed, fill", flush=True)
    out = root / "roberta-head-longformer"
    fovea("convert", head, "--to", "longformer", "--max-tokens", 1024, "--out", out)
    check_classify(out)
    print("convert roberta with labels --to longformer: classify", flush=True)


def check_pretrained(root):
    text = root / "text.txt"
    text.write_text("\n\n".join("\n".join(LINES[i:] + LINES[:i]) for i in range(8)) + "\n", encoding="utf-8")
    out = root / "pretrained"
    fovea("pretrain", "--train", text, "--out", out, "--preset", "tiny", "--steps", 3, "--vocabulary", 300)
    check_embed(out)
    check_fill(out, AutoModelForPreTraining)
    onward = published(root, "bert-pretraining", BertForPreTraining, BertConfig, write_wordpiece, **SIZES)
    fovea("pretrain", "--from", onward, "--train", text, "--out", root / "pretrained-on", "--steps", 3)
    check_fill(root / "pretrained-on", AutoModelForPreTraining)
    check_embed(root / "pretrained-on")
    print("pretrain, pretrain --from: embed, fill", flush=True)


def check_cross_encoders(root):
    """Scores of pairs as sentence-transformers' CrossEncoder gives them, by each way to name the activation."""
    from sentence_transformers import CrossEncoder

    identity, sigmoid = "torch.nn.modules.linear.Identity", "torch.nn.modules.activation.Sigmoid"
    bert = {**SIZES, "num_labels": 1}
    roberta = {**bert, "max_position_embeddings": 514, "type_vocab_size": 1}
    cases = [
        ("none", "bert", {}),
        ("new-identity", "bert", {"sentence_transformers": {"activation_fn": identity, "version": "4.0.1"}}),
        ("new-sigmoid", "roberta", {"sentence_transformers": {"activation_fn": sigmoid, "version": "4.0.1"}}),
        ("old-identity", "bert", {"sbert_ce_default_activation_function": identity}),
        ("old-sigmoid", "bert", {"sbert_ce_default_activation_function": sigmoid, "problem_type": "regression"}),
        ("three", "bert", {"num_labels": 3, "sentence_transformers": {"activation_fn": identity, "version": "4.0.1"}}),
        ("three-old", "roberta", {"num_labels": 3, "problem_type": "single_label_classification",
                                  "sbert_ce_default_activation_function": identity}),
        ("several", "bert", {"num_labels": 3, "problem_type": "multi_label_classification",
                             "sentence_transformers": {"activation_fn": sigmoid, "version": "4.0.1"}}),
    ]
    for name, family, settings in cases:
        name = f"cross-{name}"
        if family == "bert":
            folder = published(root, name, BertForSequenceClassification, BertConfig, write_wordpiece, **{**bert, **settings})
        else:
            folder = published(root, name, RobertaForSequenceClassification, RobertaConfig, write_byte_bpe,
                               **{**roberta, **settings})
        folders = [folder]
        peer = CrossEncoder(str(folder))
        peer.save_pretrained(str(root / f"{name}-resaved"))  # names the activation in a file of its own
        folders.append(root / f"{name}-resaved")
        for one in folders:
            check_cross_encoder(one, CrossEncoder(str(one)), settings)
    print("cross-encoders: rerank, classify on pairs", flush=True)


def check_cross_encoder(folder, peer, settings):
    scores = peer.predict(PAIRS)
    # A folder that does not say that it is a cross-encoder reads pairs where it is told to.
    options = ["--pairs"] if folder.name == "cross-none" else []
    lines = fovea("classify", folder, "--json", *options, lines=["\t".join(pair) for pair in PAIRS]).splitlines()
    ours = [json.loads(line) for line in lines]
    if settings.get("num_labels", 1) > 1:
        if "multi" not in settings.get("problem_type", ""):
            scores = peer.predict(PAIRS, apply_softmax=True)
        agree(f"{folder.name}: classify", [list(one["probabilities"].values()) for one in ours], scores)
        return
    if options:  # nobody named an activation: the number is the logit
        agree(f"{folder.name}: classify", [one["value"] for one in ours], peer.predict(PAIRS, activation_fn=torch.nn.Identity()))
    else:
        agree(f"{folder.name}: classify", [one["value"] for one in ours], scores)
    query, texts = PAIRS[0][0], [pair[1] for pair in PAIRS]
    ranked = [json.loads(line) for line in fovea("rerank", folder, "--query", query, "--json", lines=texts).splitlines()]
    theirs = peer.rank(query, texts)
    agree(f"{folder.name}: rerank", [one["score"] for one in ranked], [one["score"] for one in theirs])
    assert [one["text"] for one in ranked] == [texts[one["corpus_id"]] for one in theirs], f"{folder.name}: rerank"


def check_translations(folder):
    model, tokenizer = read(MarianMTModel, folder), AutoTokenizer.from_pretrained(folder)
    for beams in (1, 4):
        ours = fovea("translate", folder, "--beam", beams, lines=TEXTS[:5]).split("\n")
        for text, found in zip(TEXTS[:5], ours):
            ids = tokenizer(text, return_tensors="pt")
            limit = 2 * (ids["input_ids"].shape[1] - 1) + 10
            with torch.no_grad():
                out = model.generate(**ids, num_beams=beams, do_sample=False, max_length=limit + 2, early_stopping=beams > 1,
                                     length_penalty=1.0)
            # Beams that the limit cuts are ranked otherwise: transformers takes a forced end for certain, Fovea for as likely as
            # it is. make_marian.py compares beam search as a whole.
            if beams > 1 and out.shape[1] == limit + 2:
                continue
            theirs = tokenizer.decode(out[0], skip_special_tokens=True)
            assert found.split() == theirs.split(), f"{folder.name}, beam {beams}: {found!r} and {theirs!r}"


def check_marian(root):
    for name, settings in (("marian", {}), ("marian-untied", {"share_encoder_decoder_embeddings": False})):
        folder = root / name
        folder.mkdir()
        import sentencepiece

        write_marian_tokenizer(folder, sentencepiece.SentencePieceProcessor(model_file=str(HERE / "pieces.model")))
        tokens = json.loads((folder / "vocab.json").read_text())
        if settings:  # tables of their own want vocabularies of their own
            (folder / "target_vocab.json").write_text((folder / "vocab.json").read_text())
            (folder / "tokenizer_config.json").write_text(json.dumps({"separate_vocabs": True}))
        ends = {key: len(tokens) - 1 for key in ("pad_token_id", "decoder_start_token_id")}
        config = MarianConfig(**{**SMALL, **settings, **ends, "vocab_size": len(tokens), "dropout": 0.1,
                                 "max_position_embeddings": 512})
        model = set_sinusoids(stirred(MarianMTModel(config)))
        model.final_logits_bias[0, 0] = 2.0  # some translations end by themselves
        model.generation_config.bad_words_ids = [[ends["pad_token_id"]]]
        model.generation_config.forced_eos_token_id = 0
        model.save_pretrained(folder)
        check_translations(folder)
        files = []
        for side, lines in (("source", TEXTS[:5] * 4), ("target", TEXTS[1:6] * 4)):
            files.append(root / f"{name}.{side}")
            files[-1].write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        out = root / f"{name}-trained"
        fovea("train", "translate", "--from", folder, "--train", *files, "--valid", *files, "--out", out, "--steps", 4)
        check_translations(out)
        print(f"{name}: translate, train translate --from", flush=True)


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)  # the models are small
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        check_encoders(root)
        check_heads(root)
        check_cross_encoders(root)
        check_converted(root)
        check_pretrained(root)
        check_marian(root)
    print("all answers agree")


if __name__ == "__main__":
    main()
