"""Runs Fovea and a peer turn by turn on the same cases, prints the ratios and writes docs/benchmarks.md or another page.

Both sides are asked alternately, round after round, so that a machine that slows down slows both; each side's figure
is its best. The peer's figure is the best of its variants. Results are kept beside the page (docs/benchmarks.json), so that a
run with --filter refreshes its own rows alone; on another machine they begin anew. --page PAGE leaves the page of another
machine alone.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

import cases

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = ROOT / "build/release/fovea"
REMARKS = "## Remarks\n"


def run_fovea(arguments, threads):
    done = subprocess.run([PROGRAM, *arguments, "--threads", str(threads), "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        return {"error": done.stderr.strip()}
    return json.loads(done.stdout.splitlines()[-1])


class Worker:
    """A peer's process that holds one case."""

    def __init__(self, script, name, threads, label="", **environment):
        environment = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(ROOT / "build/bench/inductor"), **environment}
        self.process = subprocess.Popen([sys.executable, ROOT / "bench" / script, name, str(threads)], text=True,
                                        env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL)
        greeting = json.loads(self.process.stdout.readline() or "{}")
        if not greeting:
            print(f"bench: {script} failed on {name} and is left out; run it alone to see why: "
                  f"{sys.executable} bench/{script} {name} {threads}", flush=True)
        self.label = label
        self.variants, self.version = greeting.get("variants", []), greeting.get("version", "missing")

    def ask(self, variant, threads, seconds):
        self.process.stdin.write(json.dumps({"variant": variant, "threads": threads, "seconds": seconds}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        return json.loads(line) if line else {"error": "the peer's process ended"}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def keep_best(kept, measured):
    if "error" in measured:
        return kept or measured
    if not kept or "error" in kept or measured["seconds"] < kept["seconds"]:
        return measured
    return kept


def workers_of(case, threads):
    if case.onnx:
        return [Worker("ort_worker.py", case.name, threads, "ONNX Runtime, "),
                Worker("torch_worker.py", case.name, threads, "PyTorch, ")]
    if case.torch:
        return [Worker("torch_worker.py", case.name, threads)]
    # CTranslate2 reads which library to multiply with when it starts.
    return [Worker("ct2_worker.py", case.name, threads, "MKL, ", CT2_USE_MKL="1"),
            Worker("ct2_worker.py", case.name, threads, "oneDNN, ", CT2_USE_MKL="0")]


def measure(case, threads, rounds, seconds):
    workers = workers_of(case, threads)
    fovea, peer = {}, {}
    for _ in range(rounds):
        fovea = keep_best(fovea, run_fovea(case.fovea, threads))
        best = best_variant({"peer": peer})[1]
        for worker in workers:
            for variant in worker.variants:
                name = worker.label + variant
                if best and peer.get(name, best).get("seconds", math.inf) > 2 * best["seconds"]:
                    continue  # refused, or too far behind to become the best
                peer[name] = keep_best(peer.get(name, {}), worker.ask(variant, threads, seconds))
                time.sleep(0.05)  # let its threads fall asleep before the other side's turn
    version = workers[0].version
    for worker in workers:
        worker.close()
    return {"fovea": fovea, "peer": peer, "version": version}


def best_variant(row):
    timed = {name: r for name, r in row["peer"].items() if "seconds" in r}
    return min(timed.items(), key=lambda item: item[1]["seconds"]) if timed else (None, None)


def limit_of(case, fovea, peak):
    """Least seconds the machine allows, and what sets them."""
    flops = fovea.get("flops") or fovea.get("gflops", 0) * 1e9 * fovea["seconds"]
    compute = flops / (peak["peak_gflops"] * 1e9)
    best = peak["read_gbps"] if case.reads_only else max(peak["read_gbps"], peak["copy_gbps"], peak["triad_gbps"])
    memory = fovea.get("bytes", case.bytes) / (best * 1e9)
    return (compute, "FMA") if compute >= memory else (memory, "memory")


def milliseconds(seconds):
    return f"{seconds * 1e3:.3g}" if seconds < 1 else f"{seconds * 1e3:.0f}"


def mebibytes(row):
    return f"{row['peak_bytes'] / 2**20:.0f}" if row and row.get("peak_bytes") else "-"


def reached(case, fovea, results, threads):
    """What a row that is held against another of Fovea's reaches, as text."""
    def other(name):
        return results["rows"].get(f"{name}/{threads}", {}).get("fovea", {}) if name else {}

    dense, plain = other(case.dense), other(case.plain)
    if "fraction" in dense:
        return f"{fovea['fraction'] / dense['fraction']:.2f} of dense; "
    if "seconds" in plain:
        return f"{fovea['seconds'] / plain['seconds']:.2f}× plain; "
    return ""


def growth(results, threads):
    """How the time of a window grows with the length: the exponent between the shortest and the longest."""
    rows = [(n, results["rows"].get(f"attention_window_n{n}/{threads}", {}).get("fovea", {})) for n in (4096, 65536)]
    if not all("seconds" in row for _, row in rows):
        return []
    (short, few), (long, many) = rows
    exponent = math.log(many["seconds"] / few["seconds"]) / math.log(long / short)
    return [f"Window, N={short} to {long}: time grows with exponent {exponent:.3f} (target ≤ 1.05).", ""]


def memory_growth(results, threads):
    """How the memory of the long encoders grows with the length, on both sides."""
    lines = []
    for model in ("longformer", "bigbird"):
        for direction in ("forward", "both"):
            rows = [results["rows"].get(f"{model}_{direction}_n{n}/{threads}") for n in (1024, 32768)]
            if not all(rows):
                continue
            sides = [[(row["fovea"]).get("peak_bytes", 0) for row in rows],
                     [(best_variant(row)[1] or {}).get("peak_bytes", 0) for row in rows]]
            exponents = [f"{math.log(many / few) / math.log(32):.2f}" if few and many else "-" for few, many in sides]
            lines.append(f"{model}, {direction}, N=1024 to 32768: memory grows with exponent {exponents[0]} (target ≤ 1.1), "
                         f"that of PyTorch with {exponents[1]}.")
    return [part for line in lines for part in (line, "")]


def rate(seconds, fovea):
    """Milliseconds, and tokens per second where the case counts tokens."""
    if "tokens_per_second" not in fovea:
        return milliseconds(seconds)
    return f"{milliseconds(seconds)}, {fovea['tokens_per_second'] * fovea['seconds'] / seconds:.0f} tokens/s"


def table(results, threads, group):
    chosen = [case for case in cases.CASES if case.group == group and f"{case.name}/{threads}" in results["rows"]]
    if not chosen:
        return []
    peer_name = chosen[0].peer
    lines = [
        f"| case | Fovea ms | of the limit | {peer_name} ms (best variant) | ratio | result, target "
        f"| memory MiB, Fovea / {peer_name} |",
        "|---|---|---|---|---|---|---|",
    ]
    for case in chosen:
        row = results["rows"][f"{case.name}/{threads}"]
        peak = row.get("peak", results["peak"][str(threads)])
        fovea = row["fovea"]
        name, peer = best_variant(row)
        if "error" in fovea:
            lines.append(f"| {case.title} | {fovea['error']} | | | | | |")
            continue
        least, kind = limit_of(case, fovea, peak)
        # Attention and translation bring their own fraction, of the peak measured beside them.
        fraction = fovea["fraction"] if "fraction" in fovea and kind == "FMA" else least / fovea["seconds"]
        limit = f"{fraction:.2f} {kind}" if case.limited else "-"
        ratio = f"{peer['seconds'] / fovea['seconds']:.2f}×" if peer else "-"
        # What most people use, where another variant is faster.
        for usual in ("SDPA", "padded"):
            if name != usual and "seconds" in row["peer"].get(usual, {}):
                ratio += f" ({row['peer'][usual]['seconds'] / fovea['seconds']:.2f}× {usual})"
        theirs = f"{rate(peer['seconds'], fovea)} ({name})" if peer else "-"
        aim = reached(case, fovea, results, threads) + (case.target and f"target {case.target}")
        lines.append(
            f"| {case.title} | {rate(fovea['seconds'], fovea)} | {limit} | {theirs} | {ratio} "
            f"| {aim} | {mebibytes(fovea)} / {mebibytes(peer)} |")
    return lines


def write_page(results, path):
    info = results["info"]
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Fovea and PyTorch or CTranslate2 run the same case alternately; each figure is the best of",
        "its runs, for the other library also the best of its variants. The ratio is the time of the other library divided by that of",
        "Fovea: above 1, Fovea is faster.",
        "",
        f"Machine: {info['cpu']}, {results['machine']['cores']} cores, level {info['level']}; {info['compiler']}, "
        f"Highway {info['highway']}; {', '.join(f'{name} {version}' for name, version in sorted(results['peers'].items()))}.",
        "",
        "| threads | FMA peak GFLOP/s | memory GB/s: read | copy | triad |",
        "|---|---|---|---|---|",
    ]
    for threads, peak in sorted(results["peak"].items()):
        lines.append(f"| {threads} | {peak['peak_gflops']:.0f} | {peak['read_gbps']:.1f} | {peak['copy_gbps']:.1f} "
                     f"| {peak['triad_gbps']:.1f} |")
    lines += [
        "",
        "*Of the limit* is the least possible time on this machine divided by the measured time. The least possible time is that of the",
        "case's multiply-adds at the FMA peak, or of the bytes that must be moved at the best bandwidth (the read bandwidth if the case",
        "only reads), whichever is longer; both were measured in the same call of `bench/run` as the row (the table above has the last",
        "call). Cases that stay in the caches can exceed 1. *Memory* is the largest growth of resident memory. A *target* is the ratio or",
        "fraction that the project aims for.",
        "",
    ]
    for group, heading in (("ops", "## Ops, forward and backward"), ("attention", "## Attention"),
                           ("train", "## Training a translator, one step"), ("translate", "## Translating"),
                           ("encode", "## Reading with BERT"), ("long", "## Longformer and BigBird")):
        for threads in sorted(results["peak"]):
            rows = table(results, int(threads), group)
            if rows:
                lines += [f"{heading}, {threads} thread{'s' if threads != '1' else ''}", "", *rows, ""]
                lines += growth(results, threads) if group == "attention" else []
                lines += memory_growth(results, threads) if group == "long" else []
    lines += ["Commands: `make bench` measures everything, `bench/run --filter NAME` some rows. Without the other libraries:",
              "`fovea bench ops`, `attention`, `train`, `translate`, `encode` and `peak`.", ""]
    old = path.read_text() if path.exists() else ""
    remarks = old[old.index(REMARKS):] if REMARKS in old else REMARKS + "\nNone yet.\n"
    path.write_text("\n".join(lines) + "\n" + remarks)


def kept_results(info, path):
    """The rows measured on this machine so far."""
    results = json.loads(path.read_text()) if path.exists() else {}
    machine = {"cpu": info["cpu"], "level": info["level"], "cores": os.cpu_count()}
    if results and results["machine"] != machine:
        print(f"bench: {path} is of another machine ({results['machine']['cpu']}); beginning anew")
        results = {}
    return {"rows": {}, "peak": {}, "peers": {}} | results | {"machine": machine, "info": info}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--filter", default="", help="only cases with this in their name")
    parser.add_argument("--threads", default="1,2", help="thread counts, by commas")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each side")
    parser.add_argument("--seconds", type=float, default=0.4, help="time to spend on a turn")
    parser.add_argument("--page", type=Path, default=ROOT / "docs/benchmarks.md",
                        help="page to write; results are kept in a .json file beside it")
    options = parser.parse_args()
    if not PROGRAM.exists():
        raise SystemExit("bench: build/release/fovea is missing; run make build")
    chosen = [case for case in cases.CASES if options.filter in case.name]
    if not chosen:
        cases.by_name(options.filter)
    kept = options.page.with_suffix(".json")
    results = kept_results(json.loads(subprocess.check_output([PROGRAM, "info", "--json"])), kept)
    for threads in map(int, options.threads.split(",")):
        results["peak"][str(threads)] = run_fovea(["bench", "peak"], threads)
        for case in chosen:
            row = measure(case, threads, options.rounds, options.seconds)
            # A row that a later run does not refresh is still held to what the machine gave beside it.
            results["rows"][f"{case.name}/{threads}"] = row | {"peak": results["peak"][str(threads)]}
            results["peers"][case.peer] = row["version"]
            name, peer = best_variant(row)
            ours = row["fovea"].get("seconds")
            if ours and peer:
                print(f"{case.name:34} threads {threads}  Fovea {ours * 1e3:9.3f} ms  {case.peer} "
                      f"{peer['seconds'] * 1e3:9.3f} ms ({name})  ratio {peer['seconds'] / ours:5.2f}", flush=True)
            else:
                print(f"{case.name:34} threads {threads}  {row['fovea'].get('error', '')} "
                      f"{[r.get('error') for r in row['peer'].values() if 'error' in r]}", flush=True)
            kept.write_text(json.dumps(results, indent=1) + "\n")
            write_page(results, options.page)
    print(f"bench: wrote {options.page}")


if __name__ == "__main__":
    main()
