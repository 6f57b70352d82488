"""Builds a CTranslate2 Transformer with random weights and times its configurations on request.

Speaks as torch_worker.py does: started with a case's name and a thread count, asked for a variant, answers with its
best time. The library CTranslate2 multiplies with is chosen by the environment (CT2_USE_MKL), so by who starts this.
"""

import json
import math
import sys
import tempfile

import ctranslate2
import numpy as np
from ctranslate2.specs import TransformerSpec, common_spec

import cases
from timing import measure, resident_afresh, status_bytes
from translation import LENGTH, SPECIALS, WORK


def tokens_of(work):
    return ["<unk>", "<s>", "</s>", "<pad>"] + [f"w{i}" for i in range(SPECIALS, work.vocabulary)]


def build(work, directory):
    rng = np.random.default_rng(1)

    def normal(*shape):
        return (rng.standard_normal(shape) / math.sqrt(shape[-1])).astype(np.float32)

    def linear(spec, inputs, outputs):
        spec.weight, spec.bias = normal(outputs, inputs), np.zeros(outputs, np.float32)

    def norm(spec):
        spec.gamma, spec.beta = np.ones(work.width, np.float32), np.zeros(work.width, np.float32)

    def attention(spec, widths):
        for part, outputs in zip(spec.linear, widths):
            linear(part, work.width, outputs * work.width)
        norm(spec.layer_norm)

    def feed_forward(spec):
        linear(spec.linear_0, work.width, work.hidden)
        linear(spec.linear_1, work.hidden, work.width)
        norm(spec.layer_norm)

    activation = {"relu": common_spec.Activation.RELU, "swish": common_spec.Activation.SWISH}[work.activation]
    spec = TransformerSpec.from_config(work.layers, work.heads, pre_norm=False, activation=activation)
    table = normal(work.vocabulary, work.width)
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = spec.decoder.projection.weight = table
    spec.decoder.projection.bias = np.zeros(work.vocabulary, np.float32)
    for layer in spec.encoder.layer:
        attention(layer.self_attention, (3, 1))
        feed_forward(layer.ffn)
    for layer in spec.decoder.layer:
        attention(layer.self_attention, (3, 1))
        attention(layer.attention, (1, 2, 1))
        feed_forward(layer.ffn)
    spec.register_source_vocabulary(tokens_of(work))
    spec.register_target_vocabulary(tokens_of(work))
    spec.validate()
    spec.optimize()
    spec.save(directory)


def main():
    case, threads = cases.by_name(sys.argv[1]), int(sys.argv[2])
    settings = case.settings
    work = WORK[settings["preset"]]
    variants = {"1 thread": (1, 1)}
    if threads > 1:
        variants |= {f"{threads} threads": (1, threads), f"{threads} workers": (threads, 1)}
    with tempfile.TemporaryDirectory() as directory:
        build(work, directory)
        print(json.dumps({"variants": list(variants), "version": ctranslate2.__version__}), flush=True)
        rng = np.random.default_rng(2)
        sentences = 1 if settings["batch"] == 1 else 2 * settings["batch"]
        tokens = tokens_of(work)
        sources = [[tokens[t] for t in rng.integers(SPECIALS, work.vocabulary, work.source_length(i) - 1)] + ["</s>"]
                   for i in range(sentences)]
        steps, peaks = {}, {}

        def prepared(name):
            workers, inside = variants[name]
            translator = ctranslate2.Translator(directory, device="cpu", compute_type=settings["compute"],
                                                inter_threads=workers, intra_threads=inside)

            def step():
                found = translator.translate_batch(sources, beam_size=settings["beam"], max_batch_size=settings["batch"],
                                                   min_decoding_length=LENGTH, max_decoding_length=LENGTH)
                assert all(len(result.hypotheses[0]) == LENGTH for result in found)

            return step

        for line in sys.stdin:
            question = json.loads(line)
            name = question["variant"]
            try:
                if name not in steps:
                    before = resident_afresh()
                    steps[name] = prepared(name)
                    steps[name]()
                    peaks[name] = status_bytes("VmHWM") - before
                answer = {"seconds": measure(steps[name], question["seconds"]), "peak_bytes": peaks[name]}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
