"""The tasks of pictures, clips, series and plain text from Python: each trained for some steps, opened, asked and explained."""

import json

import numpy as np
import pytest

import fovea
import fovea.train
from fovea.tasks import _png

QUICK = dict(preset="tiny", threads=1)


def write_idx(folder, pictures, labels):
    """The pictures [n, height, width] and their labels as IDX files."""
    sizes = b"".join(int(size).to_bytes(4, "big") for size in pictures.shape)
    (folder / "images").write_bytes(b"\0\0\x08\x03" + sizes + pictures.astype(np.uint8).tobytes())
    (folder / "labels").write_bytes(b"\0\0\x08\x01" + len(labels).to_bytes(4, "big") + bytes(labels))
    return [folder / "images", folder / "labels"]


def squares(count, size=16):
    """Grey noise; every third picture has a white square."""
    pictures = np.random.default_rng(1).integers(0, 60, (count, size, size))
    labels = [int(i % 3 == 0) for i in range(count)]
    pictures[::3, 5:12, 5:12] = 240
    return pictures.astype(np.uint8), labels


def assert_shows(shown, folder):
    """An explanation has weights and JSON, is drawn in a notebook and written to files of every kind."""
    weights = shown.weights
    for array in weights.values() if isinstance(weights, dict) else [weights]:
        assert array.dtype == np.float32 and array.size > 0 and np.isfinite(array).all()
    assert len(weights) > 0 and isinstance(shown.to_json(), dict)
    assert "<svg" in shown._repr_mimebundle_()["image/svg+xml"] and str(shown)
    for form, begin in {".png": b"\x89PNG", ".svg": b"<?xml", ".pdf": b"%PDF", ".html": b"<!", ".json": b"{"}.items():
        shown.save(folder / f"shown{form}")
        assert (folder / f"shown{form}").read_bytes().lower().startswith(begin.lower()), form


def test_every_task_can_be_trained_and_lists_its_settings():
    for task in fovea.train.__all__[2:]:
        names = {setting["name"] for setting in fovea.train.settings(task)}
        assert {"model", "steps", "learning_rate", "seed"} <= names, task
        assert "learning_rate" in getattr(fovea.train, task).__doc__


def test_glimpse_classifier(tmp_path):
    pictures, labels = squares(60)
    files = write_idx(tmp_path, pictures, labels)
    outcome = fovea.train.glimpse(files, tmp_path / "model", files, steps=10, batch=16, **QUICK)
    assert outcome.step == 10 and outcome.best is not None
    model = fovea.open(tmp_path / "model")
    assert isinstance(model, fovea.ImageClassifier) and model.labels == ["0", "1"]
    found = model.classify([pictures[0], pictures[1]])
    assert all(sum(one["probabilities"].values()) == pytest.approx(1, abs=1e-4) for one in found)
    drawn = fovea.open(tmp_path / "model", rollouts=3)
    assert drawn.classify(pictures[0])["label"] in ("0", "1")
    assert_shows(model.explain(pictures[0]), tmp_path)
    with pytest.raises(ValueError, match="did you mean 'rollouts'"):
        fovea.open(tmp_path / "model", rollout=3)
    with pytest.raises(ValueError, match="rollouts"):
        fovea.open(tmp_path / "model", rollouts=-1)


def test_clip_classifier(tmp_path):
    pictures, labels = squares(60)
    files = write_idx(tmp_path, pictures, labels)
    fovea.train.clip(files, tmp_path / "model", files, steps=10, clips=20, test_clips=10, target="1", batch=4, **QUICK)
    model = fovea.open(tmp_path / "model")
    assert isinstance(model, fovea.ClipClassifier)
    (tmp_path / "clip").mkdir()
    for i in range(3):
        (tmp_path / "clip" / f"{i}.png").write_bytes(_png(pictures[i]))
    frames = list(pictures[:3])
    by_folder, by_list, by_paths = model.classify([tmp_path / "clip", frames, sorted((tmp_path / "clip").iterdir())])
    assert by_folder["probabilities"] == by_list["probabilities"] == by_paths["probabilities"]
    colour = np.repeat(pictures[:3, :, :, None], 3, 3)  # [frames, height, width, 3]
    assert model.classify(colour)["probabilities"] == pytest.approx(by_folder["probabilities"])
    assert_shows(model.explain(colour), tmp_path)
    with pytest.raises(ValueError, match="no frames"):
        model.classify([[]])


def test_partitioner(tmp_path):
    fovea.train.partition("scenes", tmp_path / "model", size=64, scenes=16, steps=4, batch=4, width=4, **QUICK)
    model = fovea.open(tmp_path / "model")
    assert isinstance(model, fovea.Partitioner)
    sea = np.zeros((64, 64, 3), np.uint8)
    assert isinstance(model.partition(sea), list)
    assert len(model.partition([sea, sea])) == 2
    shown = model.explain(sea)
    assert_shows(shown, tmp_path)
    np.testing.assert_allclose(shown.weights.sum(-1), 1, atol=1e-3)  # [rows, columns, classes]: probabilities


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    path = tmp_path_factory.mktemp("series") / "table.csv"
    columns = {"load": [round(float(np.sin(i / 4)), 4) for i in range(200)], "heat": [round(float(np.cos(i / 4)), 4) for i in range(200)]}
    path.write_text("load,heat\n" + "".join(f"{a},{b}\n" for a, b in zip(*columns.values())))
    return path, columns


def test_forecaster(table, tmp_path):
    path, columns = table
    outcome = fovea.train.series(path, tmp_path / "model", steps=10, steps_in=24, horizon=6, split="120/40/40", **QUICK)
    assert outcome.best is not None
    model = fovea.open(tmp_path / "model")
    assert isinstance(model, fovea.SeriesModel)
    found = model.predict(path)
    assert found["columns"] == ["load", "heat"] and np.shape(found["steps"]) == (6, 2)
    assert model.predict(columns) == found and model.predict([path.read_bytes()]) == [found]
    shown = model.explain(columns)
    assert_shows(shown, tmp_path)
    assert set(shown.weights) == {"features.load.weights", "features.heat.weights"}
    with pytest.raises(ValueError, match="wanted as many in each"):
        model.predict({name: column[: 30 + i] for i, (name, column) in enumerate(columns.items())})
    with pytest.raises(ValueError, match="reads 24 steps"):
        model.predict({name: column[:5] for name, column in columns.items()})


def test_model_of_cases(tmp_path):
    rng = np.random.default_rng(3)
    cases = [(rng.standard_normal((2, 12)) + 2 * (i % 2), "up" if i % 2 else "flat") for i in range(40)]
    line = lambda case: ":".join(",".join(f"{x:.4f}" for x in row) for row in case)
    (tmp_path / "cases.ts").write_text(
        "@problemName shift\n@univariate false\n@classLabel true flat up\n@data\n"
        + "".join(f"{line(case)}:{label}\n" for case, label in cases)
    )
    fovea.train.series(tmp_path / "cases.ts", tmp_path / "model", steps=30, learning_rate=0.01, **QUICK)
    model = fovea.SeriesModel(tmp_path / "model")
    found = model.predict([case for case, _ in cases])
    assert np.mean([one["label"] == label for one, (_, label) in zip(found, cases)]) > 0.9
    assert model.predict(line(cases[0][0]).encode())["label"] == found[0]["label"]


def write_mobilenet(stem):
    """A MobileNet of random weights, a quarter as wide, five blocks of it."""
    rng = np.random.default_rng(5)
    widths = [8, 16, 32, 32, 64, 64]
    layers = {"conv1": {"kernel": (3, 3, 3, 8), "width": 8}}
    for i in range(1, 6):
        layers[f"conv_dw_{i}"] = {"depthwise_kernel": (3, 3, widths[i - 1], 1), "width": widths[i - 1]}
        layers[f"conv_pw_{i}"] = {"kernel": (1, 1, widths[i - 1], widths[i]), "width": widths[i]}
    arrays = {}
    for name, layer in layers.items():
        width = layer.pop("width")
        for kernel, shape in layer.items():
            arrays[f"{name}/{kernel}"] = rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[:3] if kernel == "kernel" else shape[:2]))
        for part, value in {"gamma": 1, "beta": 0, "moving_mean": 0, "moving_variance": 1}.items():
            arrays[f"{name}_bn/{part}"] = np.full(width, value)
    offset = 0
    with open(f"{stem}.f32", "wb") as floats, open(f"{stem}.manifest.tsv", "w") as manifest:
        for name, array in arrays.items():
            content = array.astype("<f4").tobytes()
            floats.write(content)
            manifest.write(f"{name}\t{'x'.join(map(str, array.shape))}\t{offset}\t{len(content)}\n")
            offset += len(content)


def test_captioner(tmp_path):
    write_mobilenet(tmp_path / "encoder")
    (tmp_path / "images").mkdir()
    colours = {"red": (255, 0, 0), "blue": (0, 0, 255)}
    lists, captions = {"train": [], "valid": []}, []
    for i in range(24):
        colour = list(colours)[i % 2]
        (tmp_path / "images" / f"{i}.png").write_bytes(_png(np.full((32, 32, 3), colours[colour], np.uint8)))
        captions.append(f"{i}.png\ta {colour} picture\n")
        lists["train" if i < 18 else "valid"].append(f"{i}.png\n")
    (tmp_path / "captions.txt").write_text("".join(captions))
    for name, lines in lists.items():
        (tmp_path / f"{name}.txt").write_text("".join(lines))
    files = dict(captions=tmp_path / "captions.txt", split=[tmp_path / "train.txt", tmp_path / "valid.txt"],
                 encoder=tmp_path / "encoder")  # fmt: skip
    outcome = fovea.train.caption(tmp_path / "images", tmp_path / "model", **files, steps=30, min_count=1, picture_size=32,
                                  blocks=5, batch_words=60, learning_rate=0.01, **QUICK)  # fmt: skip
    assert outcome.step == 30 and outcome.best is not None
    model = fovea.open(tmp_path / "model")
    assert isinstance(model, fovea.Captioner)
    picture = tmp_path / "images" / "0.png"
    found = model.caption([picture, tmp_path / "images" / "1.png"])
    assert len(found) == 2 and all("picture" in text for text in found)
    assert model.caption(picture) == found[0]
    assert len(model.caption(picture, n_best=2, beam=3)) == 2
    assert "score" in model.answer(picture)
    shown = model.explain(picture)
    assert shown.title == found[0]
    assert_shows(shown, tmp_path)
    assert model.explain(picture, smooth=True).file(".png") != shown.file(".png")
    with pytest.raises(ValueError, match="did you mean 'beam'"):
        model.caption(picture, bean=3)
    with pytest.raises(ValueError, match="captions and encoder are needed"):
        fovea.train.caption(tmp_path / "images", tmp_path / "other", steps=3)
    assert "fovea train caption --images" in (tmp_path / "model" / "README.md").read_text()


def test_pretraining_and_what_it_leaves(tmp_path):
    text = "".join(f"the {a} is {b} .\nit was {b} .\n\n" for a in ("house", "tree", "boat") for b in ("red", "old", "fine")) * 6
    (tmp_path / "text.txt").write_text(text)
    outcome = fovea.train.pretrain([tmp_path / "text.txt"], tmp_path / "model", steps=5, width=16, heads=2, hidden=32, layers=1,
                                   vocabulary=120, max_tokens=32, max_positions=32, batch=8, **QUICK)  # fmt: skip
    assert outcome.step == 5
    encoder = fovea.open(tmp_path / "model")
    assert isinstance(encoder, fovea.Encoder)
    assert encoder.embed(["the house is red"]).shape == (1, 16)
    assert len(json.dumps(encoder.fill("the [MASK] is old", top=2))) > 10
    parts = fovea.Encoder(tmp_path / "model", tokens=True).embed("the house")
    assert "tokens" in parts or "spans" in parts, parts


def test_pairs(tmp_path):
    text = "".join(f"the {a} is {b} .\nit was {b} .\n\n" for a in ("house", "tree", "boat") for b in ("red", "old", "fine")) * 6
    (tmp_path / "text.txt").write_text(text)
    fovea.train.pretrain([tmp_path / "text.txt"], tmp_path / "encoder", steps=1, width=16, heads=2, hidden=32, layers=1,
                         vocabulary=120, max_tokens=32, max_positions=32, batch=8, **QUICK)  # fmt: skip
    rows = [f"{'same' if a == b else 'other'}\tthe house is {a}\tit was {b}" for a in ("red", "old") for b in ("red", "old")]
    (tmp_path / "pairs.tsv").write_text("\n".join(["kind\tfirst\tsecond", *rows * 5]) + "\n")
    columns = dict(label_column="kind", text_column="first")
    # A published classifier that does not say whether it reads pairs.
    fovea.train.classify(tmp_path / "pairs.tsv", tmp_path / "single", **{"from": str(tmp_path / "encoder")}, steps=2, threads=1, **columns)
    assert "label" in fovea.open(tmp_path / "single").classify("the house is red")
    model = fovea.open(tmp_path / "single", pairs=True)
    assert model.classify("the house is red\tit was red")["label"] in ("same", "other")
    with pytest.raises(ValueError, match="a text, a tab and a text"):
        model.classify("the house is red")
    scores = model.evaluate(tmp_path / "pairs.tsv", pair_column="second", **columns)
    assert 0 <= scores["accuracy"] <= 100
    with pytest.raises(OSError, match="no column is named 'third'"):
        model.evaluate(tmp_path / "pairs.tsv", pair_column="third", **columns)
    with pytest.raises(ValueError, match="pairs"):
        fovea.open(tmp_path / "encoder", pairs=True).embed("a text")


def test_reranking_equals_the_cross_encoder(tmp_path):
    transformers = pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "how", "tall", "the", "tower", "is", "high", "sea"]
    torch.manual_seed(0)
    config = transformers.BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                                     intermediate_size=32, max_position_embeddings=32, num_labels=1, initializer_range=0.5)
    model = transformers.BertForSequenceClassification(config).eval()
    model.save_pretrained(tmp_path / "cross")
    (tmp_path / "cross" / "vocab.txt").write_text("\n".join(words) + "\n")
    texts = ["the sea", "the tower is high", "high sea"]
    found = fovea.Encoder(tmp_path / "cross").rerank("how tall the tower", texts)
    assert sorted(one["index"] for one in found) == [0, 1, 2]
    assert all(one["text"] == texts[one["index"]] for one in found)
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)
    query = [2, 5, 6, 7, 8, 3]
    for one in found:
        ids = [words.index(word) for word in one["text"].split()] + [3]
        with torch.no_grad():
            wanted = model(torch.tensor([query + ids]), token_type_ids=torch.tensor([[0] * len(query) + [1] * len(ids)])).logits.item()
        assert one["score"] == pytest.approx(1 / (1 + np.exp(-wanted)), abs=1e-4)  # as sentence-transformers has it
    with pytest.raises(ValueError, match="query"):
        fovea.Encoder(tmp_path / "cross").rerank("", texts)
