"""The rows of docs/benchmarks.md: what Fovea is asked to run, and what PyTorch runs against it."""

from dataclasses import dataclass
from typing import Callable


@dataclass
class Case:
    name: str
    title: str
    fovea: list[str]  # arguments of `fovea`; --threads and --json are added
    torch: Callable[[], dict]  # variant name -> builder of a step (bench/torch_cases.py)
    wanted: str = "1"  # the least ratio aimed at
    group: str = "ops"


def op(name, title, wanted):
    def variants():
        import torch_cases

        return torch_cases.OPS[name]()

    return Case(name, title, ["bench", "ops", "--filter", name, "--no-limits"], variants, wanted)


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
    op("embedding", "embedding 10 000×512, 4096 ids", "1.4"),
    op("adam_step", "Adam step, 10 M parameters in 60 tensors", "1"),
]


def by_name(name):
    for case in CASES:
        if case.name == name:
            return case
    raise SystemExit(f"bench: no case is named {name}; known: {', '.join(c.name for c in CASES)}")
