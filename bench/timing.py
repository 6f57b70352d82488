"""Timing of a step and of memory, the same for every peer and as `fovea bench` does it."""

import ctypes
import gc
import time


def status_bytes(name):
    with open("/proc/self/status") as status:
        for line in status:
            if line.startswith(name + ":"):
                return int(line.split()[1]) * 1024
    return 0


def resident_afresh():
    """Resident bytes without what earlier work has freed; the high-water mark starts from here."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")
    return status_bytes("VmRSS")


def timed(step):
    start = time.perf_counter()
    step()
    return time.perf_counter() - start


def measure(step, budget):
    """Two runs to warm up, then the budget and at least five; steps of more than 2 seconds get three runs in all."""
    first = timed(step)
    if first > 2:
        return min(first, timed(step), timed(step))
    step()
    best, spent, runs = float("inf"), 0.0, 0
    while spent < budget or runs < 5:
        seconds = timed(step)
        best, spent, runs = min(best, seconds), spent + seconds, runs + 1
    return best
