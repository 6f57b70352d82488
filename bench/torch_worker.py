"""Builds one case on PyTorch's side and times its variants on request, one JSON line for each question.

Asked {"variant": "eager", "threads": 1, "seconds": 0.5}, answers {"seconds": best, "peak_bytes": growth}.
"""

import json
import sys

import torch

import cases
from timing import measure, resident_afresh, status_bytes


def main():
    torch.manual_seed(1)
    variants = cases.by_name(sys.argv[1]).torch()
    print(json.dumps({"variants": list(variants), "version": torch.__version__}), flush=True)
    steps, peaks = {}, {}
    for line in sys.stdin:
        question = json.loads(line)
        torch.set_num_threads(question["threads"])
        name = question["variant"]
        try:
            if name not in steps:
                before = resident_afresh()
                steps[name] = variants[name]()
                steps[name]()
                peaks[name] = status_bytes("VmHWM") - before
            answer = {"seconds": measure(steps[name], question["seconds"]), "peak_bytes": peaks[name]}
        except Exception as error:  # a variant that PyTorch refuses is reported, not fatal
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
