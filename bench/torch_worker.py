"""Builds one case on PyTorch's side and times its variants when told to, one JSON line for each question.

Asked {"variant": "eager", "threads": 1, "seconds": 0.5}, answers {"seconds": best, "peak_bytes": growth}.
"""

import json
import sys
import time

import torch

import cases


def status_bytes(name):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    return 0


def timed(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def measure(step, budget):
    """As `fovea bench` does: two runs to warm up, then the budget and at least five; slow steps get fewer."""
    first = timed(step)
    if first > 2:
        return min(first, timed(step))
    step()
    best, spent, runs = float("inf"), 0.0, 0
    while spent < budget or runs < 5:
        seconds = timed(step)
        best, spent, runs = min(best, seconds), spent + seconds, runs + 1
    return best


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
                with open("/proc/self/clear_refs", "w") as refs:
                    refs.write("5")
                before = status_bytes("VmRSS")
                steps[name] = variants[name]()
                steps[name]()
                peaks[name] = status_bytes("VmHWM") - before
            answer = {"seconds": measure(steps[name], question["seconds"]), "peak_bytes": peaks[name]}
        except Exception as error:  # a variant that PyTorch refuses is reported, not fatal
            answer = {"error": f"{type(error).__name__}: {error}".splitlines()[0][:200]}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
