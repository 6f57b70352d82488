"""The rows of docs/benchmarks.md: what Fovea is asked to run, and what a peer runs against it."""

from dataclasses import dataclass, field
from typing import Callable


@dataclass
class Case:
    name: str
    title: str
    fovea: list[str]  # arguments of `fovea`; --threads and --json are added
    torch: Callable[[], dict] | None  # variant name -> builder of a step (bench/torch_cases.py); None: not PyTorch
    target: str = "1"  # the least ratio that is the goal
    group: str = "ops"
    bytes: float = 0  # read and written at least, where Fovea does not say
    reads_only: bool = False  # its bytes are read: the limit is the read bandwidth
    dense: str = ""  # the case whose rate per visited pair this one is held against
    plain: str = ""  # the case whose time this one is held against
    settings: dict = field(default_factory=dict)  # what bench/ct2_worker.py is asked for
    limited: bool = True  # whether the FMA peak limits it
    onnx: bool = False  # ONNX Runtime runs it too (bench/ort_worker.py)

    @property
    def peer(self):
        if self.onnx:
            return "ONNX Runtime or PyTorch"
        return "PyTorch" if self.torch else "CTranslate2"


def op(name, title, target):
    def variants():
        import torch_cases

        return torch_cases.OPS[name]()

    return Case(name, title, ["bench", "ops", "--filter", name, "--no-limits"], variants, target)


def attention(name, title, target, spec, n, d=64, batch=1, heads=8, kv_heads=None, nk=None, backward=False,
              dense="", plain="", **peer):
    """Fovea's fused attention against SDPA (and FlexAttention or eager) with the same meaning."""

    def variants():
        import torch_cases

        return torch_cases.attention(batch, heads, n, d, kv_heads=kv_heads, nk=nk, backward=backward, **peer)

    arguments = ["bench", "attention", "--batch", batch, "--heads", heads, "--n", n, "--d", d, "--spec", spec]
    arguments += ["--kv-heads", kv_heads] if kv_heads else []
    arguments += ["--nk", nk] if nk else []
    arguments += ["--direction", "both" if backward else "forward"]
    least = 4 * 2 * d * batch * (heads * n + (kv_heads or heads) * (nk or n)) * (3 if backward else 1)
    return Case(f"attention_{name}", title, [str(a) for a in arguments], variants, target, "attention", least,
                reads_only=n == 1, dense=dense and f"attention_{dense}", plain=plain and f"attention_{plain}")


def sparse(name, title, spec, n, keep):
    """A pattern of visited blocks, forward and backward, against SDPA with its mask."""

    def variants():
        import torch_cases

        return torch_cases.attention(1, 8, n, 64, backward=True, keep=getattr(torch_cases, keep))

    case = attention(name, title, "≥ 0.70 of dense", spec, n, backward=True, dense="both_full_n2048")
    case.torch = variants
    return case


def additive(name, title, target, nq, backward, projected=False):
    def variants():
        import torch_cases

        return torch_cases.additive(64, nq, 32, 256, backward, projected)

    arguments = ["bench", "attention", "--batch", "64", "--heads", "1", "--n", str(nq), "--nk", "32", "--d", "256",
                 "--spec", "additive / full / soft", "--direction", "both" if backward else "forward"]
    arguments += ["--projected-keys"] if projected else []
    return Case(f"attention_{name}", title, arguments, variants, target, "attention")


def training(preset, title, target):
    def variants():
        import torch_translation

        return torch_translation.training(preset)

    return Case(f"train_{preset}", title, ["bench", "train", "--preset", preset], variants, target, "train")


def training_bahdanau(title, target):
    def variants():
        import torch_rnn

        return torch_rnn.training()

    return Case("train_bahdanau", title, ["bench", "train", "--model", "bahdanau"], variants, target, "train")


def classifying(name, title, target, model, preset, texts, shortest, longest):
    """Steps of training a text classifier, or of fine-tuning BERT."""

    def variants():
        import torch_reading

        return torch_reading.variants(model, preset, texts, shortest, longest)

    arguments = ["bench", "classify", "--model", model, "--preset", preset, "--texts", str(texts),
                 "--shortest", str(shortest), "--longest", str(longest)]
    return Case(f"train_classify_{name}", title, arguments, variants, target, "train", limited=False)


def translating(preset, compute, beam, batch, target):
    settings = {"preset": preset, "compute": compute, "beam": beam, "batch": batch}
    arguments = [part for name, value in settings.items() for part in (f"--{name}", str(value))]
    search = "greedy" if beam == 1 else f"beam {beam}"
    return Case(f"translate_{preset}_{compute}_batch{batch}_beam{beam}", f"{preset} {compute}, {search}, batch {batch}",
                ["bench", "translate", *arguments], None, target, "translate", settings=settings,
                limited=compute == "float32")


def encoding(shape, compute, batch, tokens, target, lines=0):
    """Reading with a BERT of random weights, against ONNX Runtime and PyTorch."""

    def variants():
        import torch_encoders

        return torch_encoders.bert(shape, compute, batch, tokens, lines or batch)

    settings = {"shape": shape, "compute": compute, "batch": batch, "tokens": tokens, "lines": lines or batch}
    arguments = [part for name, value in settings.items() for part in (f"--{name}", str(value))]
    size = f"{batch}×{tokens}" + (f", {lines} lines" if lines else "")
    return Case(f"encode_{shape}_{compute}_{batch}x{tokens}", f"{shape} {compute}, {size}", ["bench", "encode", *arguments],
                variants, target, "encode", settings=settings, limited=compute == "float32", onnx=True)


def reading_long(model, tokens, backward, target):
    """Two layers of Longformer or BigBird, 768 wide, against Hugging Face's."""

    def variants():
        import torch_encoders

        return torch_encoders.long_model(model, tokens, backward)

    arguments = ["bench", "encode", "--model", model, "--layers", "2", "--batch", "1", "--tokens", str(tokens),
                 "--direction", "both" if backward else "forward"]
    direction = "forward + backward" if backward else "forward"
    return Case(f"{model}_{'both' if backward else 'forward'}_n{tokens}", f"{model}, 2 layers, {direction}, N={tokens}",
                arguments, variants, target, "long")


FULL, CAUSAL = "scaled_dot / full / soft", "scaled_dot / causal / soft"
WINDOW = "scaled_dot / window(256,256) / soft"
LONGFORMER = "scaled_dot / window(256,256) | global(0) / soft"
BIGBIRD = "scaled_dot / block_window(64,1,1) | random_blocks(64,3,1) | global(0..127) / soft"

CASES = [
    op("linear", "linear 4096×512→2048", "1"),
    op("layer_norm", "layer norm 4096×512", "1"),
    op("residual_dropout_norm", "residual + dropout + layer norm 4096×512", "3"),
    op("cross_entropy", "cross-entropy with smoothing 4096×10 000", "3"),
    op("gru_512", "GRU, batch 64, 32 steps, 512→512", "1.4"),
    op("lstm_512", "LSTM, batch 64, 32 steps, 512→512", "1"),
    op("gru_128", "GRU, batch 16, 32 steps, 128→128", "1.4"),
    op("lstm_128", "LSTM, batch 16, 32 steps, 128→128", "1.4"),
    op("lstm_ragged", "bidirectional LSTM, lengths 10…200, batch 64, 128→128", "1.8"),
    op("conv_16", "convolution 3×3, 64 images 32×32, 16→16", "1"),
    op("conv_64", "convolution 3×3, 64 images 8×8, 64→64", "1"),
    op("conv_wide_64", "convolution 3×3, 64 images 32×32, 64→64", "1"),
    op("conv_stride", "convolution 3×3 of stride 2, 64 images 32×32, 16→32", "1"),
    op("conv_depthwise", "depthwise convolution 3×3, 16 images 28×28, 64 channels", "1"),
    op("mobilenet_56", "depthwise 3×3 and pointwise, 16 images 56×56, 128 channels", "1"),
    op("mobilenet_14", "depthwise 3×3 and pointwise, 16 images 14×14, 512 channels", "1"),
    op("se_block", "squeeze and excitation, 32 images 56×56, 64 channels", "2"),
    op("cbam_block", "CBAM, 32 images 56×56, 64 channels", "2"),
    op("resnet20_step", "ResNet-20 training step, 64 images 32×32", "1.2"),
    op("embedding", "embedding 10 000×512, 4096 ids", "1.4"),
    op("sat_decoder", "SAT decoder training, 64 captions of 12 words, 196 places, 512 wide", "2"),
    op("mobilenet_features", "MobileNet features of one picture, 224×224→14×14×512", "1.3"),
    op("adam_step", "Adam step, 10 M parameters in 60 tensors", "1"),
    op("bert_pretraining", "BERT-mini pre-training step, 64 pairs of 128 tokens", "2"),
    op("ram_training", "RAM training step, 64 scenes 60×60, 8 glimpses 12×12 at 3 scales", "3"),
    *(attention(f"full_d{d}_n{n}", f"full forward, D={d}, N={n}", "≥ 0.80 of peak" if d == 64 else "≥ 0.83 of peak", FULL, n, d)
      for d in (64, 128) for n in (512, 2048, 8192)),
    attention("causal_n1024", "causal forward, D=64, N=1024", "1.5, ≥ 0.75 of peak", CAUSAL, 1024, causal=True, flex=True),
    attention("causal_n2048", "causal forward, D=64, N=2048", "1.5, ≥ 0.75 of peak", CAUSAL, 2048, causal=True, flex=True),
    attention("both_full_n2048", "full forward + backward, D=64, N=2048", "≥ 0.75 of peak", FULL, 2048, backward=True),
    attention("both_causal_n2048", "causal forward + backward, D=64, N=2048", "≥ 0.70 of peak", CAUSAL, 2048, causal=True,
              backward=True),
    *(attention(f"window_n{n}", f"window(256,256) forward, N={n}", target, WINDOW, n, window=256, flex=True,
                masked=n <= 16384, dense="full_d64_n2048")
      for n, target in ((4096, "≥ 0.80 of dense"), (16384, "20 (SDPA), ≥ 0.80 of dense"), (65536, "≥ 0.80 of dense"))),
    *(sparse(f"longformer_n{n}", f"Longformer, window 512, one global token, forward + backward, N={n}", LONGFORMER, n,
             "longformer") for n in (4096, 16384)),
    *(sparse(f"bigbird_n{n}", f"BigBird, blocks of 64, 3 random, 2 global, forward + backward, N={n}", BIGBIRD, n,
             "bigbird") for n in (4096, 16384)),
    attention("dropout", "dropout 0.1, forward + backward, N=1024", "≤ 1.25× plain", "scaled_dot / full / soft(0.1)", 1024,
              backward=True, plain="plain", dropout=0.1),
    attention("bias", "trained bias, forward + backward, N=1024", "≤ 1.25× plain", "scaled_dot + bias / full / soft", 1024,
              backward=True, plain="plain", bias=True),
    attention("alibi", "ALiBi, forward + backward, N=1024", "≤ 1.25× plain", "scaled_dot + alibi / full / soft", 1024,
              backward=True, plain="plain", alibi=True),
    attention("plain", "plain, forward + backward, N=1024", "", FULL, 1024, backward=True),
    additive("additive", "additive, B=64, 32×32, 256 hidden, forward", "10", 32, False),
    additive("additive_both", "additive, B=64, 32×32, 256 hidden, forward + backward", "10", 32, True),
    additive("additive_step", "additive, one decoder step, keys projected before", "10", 1, False, projected=True),
    attention("decode", "decode: 1 query, 4096 keys, 32 heads on 8, D=128", "≥ 0.85 of memory", FULL, 1, 128, heads=32,
              kv_heads=8, nk=4096),
    attention("small_n32", "small: N=32, batch·heads 512, D=64", "≥ 0.60 of peak", FULL, 32, batch=64),
    attention("small_n64", "small: N=64, batch·heads 512, D=64", "≥ 0.60 of peak", FULL, 64, batch=64),
    training("tiny", "Transformer-tiny (4+4, 128), 270 sentences of 8…22", "3"),
    training("base", "Transformer-base (6+6, 512), 82 sentences of 18…32", "1.7"),
    training_bahdanau("Bahdanau (512), 64 sentences of 10…20", "1.8"),
    classifying("lstm", "LSTM + attention (128), 64 texts of 10…200", "3", "lstm", "small", 64, 10, 200),
    classifying("transformer", "Transformer classifier (2, 128), 8 texts of 128", "1.3", "transformer", "small", 8, 128, 128),
    classifying("bert_mini", "BERT-mini fine-tuning, 8 texts of 128", "1.3", "bert", "mini", 8, 128, 128),
    classifying("bert_base", "BERT-base fine-tuning, 8 texts of 128", "1.3", "bert", "base", 8, 128, 128),
    translating("base", "float32", 1, 32, "1.5"),
    translating("base", "float32", 4, 32, "1.5"),
    translating("base", "float32", 1, 1, "0.95"),
    translating("base", "int8", 1, 32, "1"),
    translating("base", "int8", 4, 32, "1.3"),
    translating("base", "int8", 1, 1, "1"),
    # The size of most OPUS-MT models: no lower than the rows above.
    *(translating("marian", compute, beam, batch, target)
      for compute, beam, batch, target in (("float32", 1, 32, "1.5"), ("float32", 4, 32, "1.5"), ("float32", 1, 1, "0.95"),
                                           ("int8", 1, 32, "1"), ("int8", 4, 32, "1.3"), ("int8", 1, 1, "1"))),
    translating("tiny", "float32", 1, 32, "1.5"),
    translating("tiny", "float32", 4, 32, "1.5"),
    translating("tiny", "float32", 1, 1, "1.5"),
    *(encoding("base", compute, batch, tokens, target)
      for compute, target in (("float32", "1, ≥ 0.85 of peak from 1024 tokens on"), ("int8", "1.3"))
      for batch, tokens in ((1, 128), (8, 128), (32, 256))),
    *(encoding("minilm", compute, 32, 64, target, lines=1024) for compute, target in (("float32", "1"), ("int8", "1.3"))),
    *(reading_long(model, tokens, backward, "5" if tokens == 4096 else "")
      for model in ("longformer", "bigbird") for backward in (False, True) for tokens in (1024, 4096, 32768)),
]


def by_name(name):
    for case in CASES:
        if case.name == name:
            return case
    raise SystemExit(f"bench: no case is named {name}; known: {', '.join(c.name for c in CASES)}")
