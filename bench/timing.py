"""Timing of a step and of memory, the same for every peer and as `fovea bench` does it."""

import time


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
    """Two runs to warm up, then the budget and at least five; slow steps get fewer."""
    first = timed(step)
    if first > 10:
        return first
    if first > 2:
        return min(first, timed(step))
    step()
    best, spent, runs = float("inf"), 0.0, 0
    while spent < budget or runs < 5:
        seconds = timed(step)
        best, spent, runs = min(best, seconds), spent + seconds, runs + 1
    return best
