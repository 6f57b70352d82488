"""Tasks and training from Python: small models trained here, opened, asked, explained; and everything that may go wrong."""

import inspect
import json
import os
import random
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import fovea
import fovea.train

QUICK = dict(preset="tiny", threads=1)


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tasks")


@pytest.fixture(scope="session")
def texts(folder):
    draw = random.Random(1)
    path = folder / "texts.tsv"
    with open(path, "w") as file:
        file.write("label\ttext\n")
        for i in range(240):
            word = draw.choice(["great", "lovely"] if i % 2 else ["awful", "dull"])
            file.write(f"{'pos' if i % 2 else 'neg'}\t{draw.choice(['the film', 'a plot'])} was {word}\n")
    return path


@pytest.fixture(scope="session")
def classifier(folder, texts):
    fovea.train.classify(texts, folder / "classifier", texts, steps=80, learning_rate=0.01, **QUICK)
    return folder / "classifier"


@pytest.fixture(scope="session")
def translator(folder):
    draw = random.Random(2)
    words = ["eins", "zwei", "drei", "vier"]
    english = {"eins": "one", "zwei": "two", "drei": "three", "vier": "four"}
    lines = [[draw.choice(words) for _ in range(draw.randint(2, 5))] for _ in range(200)]
    (folder / "source.txt").write_text("".join(" ".join(line) + "\n" for line in lines))
    (folder / "target.txt").write_text("".join(" ".join(english[w] for w in line) + "\n" for line in lines))
    fovea.train.translate([folder / "source.txt", folder / "target.txt"], folder / "translator", steps=60, tokenizer="words",
                          vocabulary=0, **QUICK)
    return folder / "translator"


def picture(kind, size=16):
    pixels = np.zeros((size, size, 3), np.uint8)
    pixels[: size // 2 if kind == "top" else size, : size if kind == "top" else size // 2] = 255
    return pixels


@pytest.fixture(scope="session")
def image_classifier(folder):
    from fovea.tasks import _png

    for kind in ("top", "left"):
        (folder / "pictures" / kind).mkdir(parents=True)
        for i in range(12):
            noise = np.random.default_rng(i).integers(0, 60, (16, 16, 3), np.uint8)
            (folder / "pictures" / kind / f"{i}.png").write_bytes(_png(np.maximum(picture(kind), noise)))
    fovea.train.image(folder / "pictures", folder / "images", steps=40, size=16, gate="cbam", shift=0, batch=8, **QUICK)
    return folder / "images"


def test_classifier(classifier):
    model = fovea.open(classifier)
    assert isinstance(model, fovea.Classifier) and model.labels == ["neg", "pos"]
    found = model.classify(["the film was great", "a plot was dull"])
    assert [answer["label"] for answer in found] == ["pos", "neg"]
    assert model.classify("the film was great") == found[0]
    texts = ["the film was great", "a plot was dull"]
    for several in (tuple(texts), np.array(texts), (text for text in texts)):
        assert model.classify(several) == found
    assert sum(found[0]["probabilities"].values()) == pytest.approx(1, abs=1e-5)
    words = model.answer("the film was great", words=True)["words"]
    assert [word for word, _ in words][:4] == ["the", "film", "was", "great"]


def test_evaluation(classifier, texts):
    assert fovea.open(classifier).evaluate(texts)["accuracy"] > 0.9


def test_explanation_of_a_text(classifier, tmp_path):
    shown = fovea.open(classifier).explain("the film was great")
    assert shown.title.startswith("pos")
    weights = shown.weights
    assert weights.dtype == np.float32 and weights.sum() == pytest.approx(1, abs=1e-3)
    assert shown.to_json()["label"] == "pos" and "film" in str(shown)
    assert "<svg" in shown._repr_mimebundle_()["image/svg+xml"]
    for form, begin in {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".json": b"{"}.items():
        shown.save(tmp_path / f"map{form}")
        assert (tmp_path / f"map{form}").read_bytes().startswith(begin)


def test_translator(translator, tmp_path):
    model = fovea.open(translator)
    assert isinstance(model, fovea.Translator)
    found = model.translate(["eins zwei", "drei"])
    assert len(found) == 2 and all(isinstance(text, str) for text in found)
    assert model.translate("eins zwei") == found[0]
    assert len(model.translate("eins zwei", n_best=3, beam=4)) == 3
    assert fovea.Translator(translator).translate("eins zwei") == found[0]
    shown = model.explain("eins zwei", target="one two")
    heads = shown.weights["cross.layers.0.heads"]  # [heads, target words, source words]
    assert heads.ndim == 3 and heads.shape[1:] == (3, 3)
    np.testing.assert_allclose(heads.sum(-1), 1, atol=1e-3)
    shown.save(tmp_path / "map.png")
    assert (tmp_path / "map.png").read_bytes().startswith(b"\x89PNG")


def test_options_choose_what_an_explanation_shows(translator, classifier, image_classifier, tmp_path):
    model = fovea.open(translator)
    whole = model.explain("eins zwei drei")
    shown = model.explain("eins zwei drei", kind="encoder", layer=0, head="1", units="tokens")
    assert shown.to_json() == whole.to_json() and shown.weights.keys() == whole.weights.keys()
    assert shown.file(".png") != whole.file(".png") and str(shown) != str(whole)
    assert shown.file(".png") == model.explain("eins zwei drei", kind="encoder", layer="0", head=1, units="tokens").file(".png")
    shown.save(tmp_path / "page.html")
    assert b"<html" in (tmp_path / "page.html").read_bytes()
    pairs = model.explain("eins zwei drei", threshold=1e-9)
    assert len(pairs.file(".txt")) > len(whole.file(".txt"))
    for options, text in ({"layer": 99}, "layer"), ({"head": "first"}, "head"), ({"kind": "crss"}, "kind"), ({"threshold": 2}, "threshold"), (
        {"smooth": True}, "captioner"), ({"layer": "rollout", "head": 0}, "rollout"), ({"target": "one", "beam": 3}, "beam"):  # fmt: skip
        with pytest.raises(ValueError, match=text):
            model.explain("eins zwei drei", **options)
    with pytest.raises(ValueError, match="translator"):
        fovea.open(classifier).explain("the film", target="x")
    with pytest.raises(ValueError):
        fovea.open(classifier).explain("the film", layer=0)
    with pytest.raises(ValueError):
        fovea.open(image_classifier).explain(picture("top"), layer=0)


def test_image_classifier(image_classifier, folder, tmp_path):
    model = fovea.open(image_classifier)
    assert isinstance(model, fovea.ImageClassifier)
    path = folder / "pictures" / "top" / "0.png"
    by_path, by_bytes, by_name = model.classify([path, path.read_bytes(), str(path)])
    assert by_path["label"] == "top"
    assert by_path["probabilities"] == by_bytes["probabilities"] == by_name["probabilities"]
    assert model.classify(picture("left"))["label"] == "left"
    assert model.classify([picture("left")[:, :, 0], picture("top")])[0]["label"] == "left"
    image = pytest.importorskip("PIL.Image")
    assert model.classify(image.fromarray(picture("top")))["label"] == "top"
    shown = model.explain(picture("top"))
    assert all(array.ndim == 2 for array in shown.weights.values())
    shown.save(tmp_path / "heat.png")
    assert (tmp_path / "heat.png").read_bytes().startswith(b"\x89PNG")


def test_encoder(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "film", "of", "rare", "beauty"]
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                     intermediate_size=32, max_position_embeddings=32)
    model = transformers.BertForMaskedLM(config).eval()
    model.save_pretrained(tmp_path / "bert")
    (tmp_path / "bert" / "vocab.txt").write_text("\n".join(words) + "\n")
    encoder = fovea.open(tmp_path / "bert")
    assert isinstance(encoder, fovea.Encoder)
    rows = encoder.embed(["a film", "of rare beauty"])
    assert rows.shape == (2, 16) and rows.dtype == np.float32
    with torch.no_grad():
        states = model.bert(torch.tensor([[2, 5, 6, 3]])).last_hidden_state[0].mean(0).numpy()
    np.testing.assert_allclose(rows[0], states, atol=1e-5)
    np.testing.assert_array_equal(encoder.embed("a film"), rows[0])
    unit = fovea.Encoder(tmp_path / "bert", normalize="yes").embed("a film")
    assert np.linalg.norm(unit) == pytest.approx(1, abs=1e-5)
    filled = encoder.fill("a [MASK] of beauty", top=3)
    with torch.no_grad():
        best = model(torch.tensor([[2, 5, 4, 7, 9, 3]])).logits[0, 2].argmax().item()
    assert words[best] in json.dumps(filled)


def test_errors_of_folders(classifier, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        fovea.open(tmp_path / "nothing")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "config.json").write_text("{")
    with pytest.raises(OSError, match="config.json"):
        fovea.open(tmp_path / "broken")
    with pytest.raises(ValueError, match="needs a translator"):
        fovea.Translator(classifier)
    with pytest.raises(ValueError, match="did you mean 'classify'"):
        fovea.Model(classifier, purpose="clasify")


def test_errors_of_calls(classifier, image_classifier, tmp_path):
    model = fovea.open(classifier)
    with pytest.raises(ValueError, match="did you mean 'words'"):
        model.answer("a", word=True)
    with pytest.raises(ValueError, match="got int"):
        model.classify(["a", 3])
    with pytest.raises(ValueError, match="wrong type"):
        model.answer("a", words="much")
    with pytest.raises(ValueError, match="beam|translator|translate"):
        model.answer("a", beam=3)
    for option in ({"top": 3}, {"query": "film"}, {"alignment": "hard"}):
        with pytest.raises(ValueError, match="needs a"):
            model.answer("a", **option)
    with pytest.raises(ValueError, match="on_error"):
        model.answer("a", on_error="skip")
    with pytest.raises(ValueError, match="did you mean"):
        model.explain("the film", layr=1)
    with pytest.raises(ValueError):
        model.explain("the film").save(tmp_path / "map.gif")
    with pytest.raises(OSError):
        model.explain("the film").save(tmp_path / "no folder" / "map.png")
    images = fovea.open(image_classifier)
    with pytest.raises(ValueError):
        images.classify(b"no picture")
    assert images.answer([b"no picture"], on_error="empty") == [None]
    with pytest.raises(FileNotFoundError):
        images.classify("no picture.png")
    with pytest.raises(ValueError, match="wanted uint8"):
        images.classify(np.zeros((4, 4)))


def test_settings_are_those_of_the_flags():
    for task in ("translate", "classify", "image"):
        listed = fovea.train.settings(task)
        assert {"model", "steps", "learning_rate", "seed"} <= {setting["name"] for setting in listed}
        assert all(setting["meaning"] for setting in listed)
        assert "learning_rate" in inspect.getdoc(getattr(fovea.train, task))


def test_errors_of_training(texts, tmp_path):
    out = tmp_path / "out"
    with pytest.raises(ValueError, match="did you mean 'steps'"):
        fovea.train.classify(texts, out, stepps=3)
    with pytest.raises(ValueError, match="steps: got"):
        fovea.train.classify(texts, out, steps="many")
    for value in (float("nan"), float("inf"), object(), "much", [1]):
        with pytest.raises(ValueError, match="learning_rate: got"):
            fovea.train.classify(texts, out, steps=3, learning_rate=value)
    with pytest.raises(FileNotFoundError):
        fovea.train.classify(tmp_path / "none.tsv", out, steps=3)
    with pytest.raises(FileNotFoundError):
        fovea.train.classify(texts, out, from_=tmp_path / "none", steps=3)
    with pytest.raises(ValueError, match="wanted at most 1"):
        fovea.train.classify([texts, texts], out)
    with pytest.raises(ValueError, match="unknown task"):
        fovea.train.settings("clasify")
    assert not out.exists()


def test_progress_and_resume_after_an_error_of_the_callback(texts, tmp_path):
    def stop(report):
        if report["event"] == "step" and report["step"] == 5:
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="mine"):
        fovea.train.classify(texts, tmp_path / "model", steps=12, callback=stop, **QUICK)
    events = []
    outcome = fovea.train.classify(texts, tmp_path / "model", steps=12, callback=events.append, progress=True, **QUICK)
    assert outcome.outcome == "finished" and outcome.step == 12
    assert next(e for e in events if e["event"] == "resume")["step"] == 5
    assert [e["step"] for e in events if e["event"] == "step"] == list(range(6, 13))
    straight = fovea.train.classify(texts, tmp_path / "straight", steps=12, **QUICK)
    assert straight.step == 12
    a, b = ((tmp_path / name / "model.safetensors").read_bytes() for name in ("model", "straight"))
    assert a == b


@pytest.mark.parametrize("installed", [True, False])
def test_progress_is_shown_with_and_without_tqdm(installed, texts, tmp_path, monkeypatch, capsys):
    if installed:
        pytest.importorskip("tqdm")
    else:
        monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    fovea.train.classify(texts, tmp_path / "model", texts, steps=6, validations=2, progress=True, **QUICK)
    shown = capsys.readouterr().err
    assert ("6/6" in shown) == installed and "loss" in shown and "validation" in shown
    fovea.train.classify(texts, tmp_path / "quiet", steps=2, **QUICK)
    assert capsys.readouterr().err == ""


def test_ctrl_c_saves_and_raises(texts, tmp_path):
    script = textwrap.dedent("""
        import sys, fovea.train
        def tell(report):
            if report["event"] == "step" and report["step"] == 3:
                print("running", flush=True)
        try:
            fovea.train.classify(sys.argv[1], sys.argv[2], preset="tiny", minutes=10, callback=tell)
        except KeyboardInterrupt:
            print("stopped", flush=True)
    """)
    process = subprocess.Popen([sys.executable, "-c", script, str(texts), str(tmp_path / "model")], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "running\n"
    process.send_signal(signal.SIGINT)
    assert process.communicate(timeout=120)[0] == "stopped\n"
    assert os.listdir(tmp_path / "model" / "checkpoints")


def test_numbers_of_numpy_are_settings(texts, tmp_path):
    outcome = fovea.train.classify(texts, tmp_path / "model", steps=np.int64(2), learning_rate=np.float64(0.01), **QUICK)
    assert outcome.step == 2
    assert "--steps 2 --learning-rate 0.01" in (tmp_path / "model" / "README.md").read_text()


LONG_CALLS = {
    "translate": "model.translate(['eins zwei drei vier ' * 2] * 200000)",
    "answer": "model.answer(['eins zwei drei vier ' * 2] * 200000, threads=1)",
    "explain": "model.explain('eins zwei ' * 500)",
    "classify": "model.classify(['the film was great'] * 2000000)",
    "evaluate": "model.evaluate(sys.argv[2])",
}


@pytest.mark.parametrize("call", LONG_CALLS)
def test_ctrl_c_ends_a_long_call(call, classifier, translator, texts, tmp_path):
    # Each call would take a minute or more, an explanation ten seconds. Python raises KeyboardInterrupt at its end in any case:
    # time tells.
    script = textwrap.dedent(f"""
        import sys, fovea
        model = fovea.open(sys.argv[1])
        short = model.answer("eins")
        print("running", flush=True)
        try:
            {LONG_CALLS[call]}
            print("ended", flush=True)
        except KeyboardInterrupt:
            print("stopped", flush=True)
        assert model.answer("eins") == short
    """)
    many = tmp_path / "many.tsv"
    if call == "evaluate":
        head, *rows = texts.read_text().splitlines(keepends=True)
        many.write_text(head + "".join(rows) * 4000)
    folder = classifier if call in ("classify", "evaluate") else translator
    process = subprocess.Popen([sys.executable, "-c", script, str(folder), str(many)], stdout=subprocess.PIPE, text=True)
    assert process.stdout.readline() == "running\n"
    time.sleep(1.5)  # in the midst of it
    process.send_signal(signal.SIGINT)
    begin = time.monotonic()
    assert process.stdout.readline() == "stopped\n"
    assert time.monotonic() - begin < (5 if call == "explain" else 15)
    assert process.wait(timeout=60) == 0
