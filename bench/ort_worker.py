"""Runs a BERT of random weights in ONNX Runtime and times its variants on request.

Speaks as torch_worker.py does. The graph is what PyTorch exports, optimised by ONNX Runtime; int8 is its dynamic
quantisation.
"""

import json
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.transformers import optimizer

import cases
import torch_encoders
from timing import measure, resident_afresh, status_bytes


class States(torch.nn.Module):
    """The last states alone, as `fovea bench encode` computes them."""

    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, ids):
        return self.model(input_ids=ids).last_hidden_state


def export(settings, directory):
    """Paths of the graphs by variant."""
    shape = torch_encoders.SHAPES[settings["shape"]]
    model = States(torch_encoders.bert_model(settings["shape"], settings["tokens"], "eager"))
    ids = torch_encoders.texts(settings["batch"], settings["tokens"])
    plain = str(Path(directory) / "plain.onnx")
    torch.onnx.export(model, (ids,), plain, input_names=["ids"], output_names=["states"], dynamo=False)
    fused = str(Path(directory) / "fused.onnx")
    optimizer.optimize_model(plain, model_type="bert", num_heads=shape["num_attention_heads"],
                             hidden_size=shape["hidden_size"]).save_model_to_file(fused)
    graphs = {"exported": plain, "fused": fused}
    if settings["compute"] == "float32":
        return graphs
    for name, path in list(graphs.items()):
        graphs[name] = path.replace(".onnx", "_int8.onnx")
        # ONNX cannot infer what the fused nodes give, and the quantiser wants to know.
        quantize_dynamic(path, graphs[name], weight_type=QuantType.QInt8,
                         extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
    return graphs


def main():
    case = cases.by_name(sys.argv[1])
    settings = case.settings
    torch.manual_seed(1)
    with tempfile.TemporaryDirectory() as directory:
        graphs = export(settings, directory)
        print(json.dumps({"variants": list(graphs), "version": onnxruntime.__version__}), flush=True)
        ids = np.random.default_rng(2).integers(2, torch_encoders.VOCABULARY, (settings["batch"], settings["tokens"]))
        steps, peaks = {}, {}

        def prepared(name, threads):
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
            session = onnxruntime.InferenceSession(graphs[name], options, providers=["CPUExecutionProvider"])

            def step():
                for _ in range(0, settings["lines"], settings["batch"]):
                    session.run(["states"], {"ids": ids.astype(np.int64)})

            return step

        for line in sys.stdin:
            question = json.loads(line)
            name, threads = question["variant"], question["threads"]
            try:
                if (name, threads) not in steps:
                    before = resident_afresh()
                    steps[name, threads] = prepared(name, threads)
                    steps[name, threads]()
                    peaks[name] = status_bytes("VmHWM") - before
                answer = {"seconds": measure(steps[name, threads], question["seconds"]), "peak_bytes": peaks[name]}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
