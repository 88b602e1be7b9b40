"""Replays an access trace with every replacement algorithm of libcachesim, and with lowmark's model.

Each run is a process of its own. Round 1 runs every algorithm; the further rounds run the fastest ones of
it again. A run of the model comes before every few of theirs, so that all see the same machine. Times are
seconds on the CPU: for libcachesim those of ``process_trace`` on its native reader, for the model those
of the whole run with the construction of its machine and the drawing of its accesses.

usage: peers.py TRACE CACHE_PAGES CASE MEASURE [ROUNDS]
       peers.py --one ALGORITHM TRACE CACHE_PAGES
"""

from __future__ import annotations

import inspect
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass, field

FASTEST = 5
"""Algorithms that are run again after round 1."""
OURS_EVERY = 5
"""A run of the model before so many runs of peers."""
TIMEOUT_S = 60


@dataclass
class Row:
    """What the runs of one algorithm gave."""

    rates: list[float] = field(default_factory=list)
    """Million requests per second."""
    miss_ratio: float = 0.0

    @property
    def median(self) -> float:
        return statistics.median(self.rates)

    def spread(self) -> str:
        return f"{min(self.rates):.2f}–{max(self.rates):.2f}" if len(self.rates) > 1 else "–"


def algorithms() -> list[str]:
    """Classes of the package that are replacement algorithms; the plugin cache is an interface."""
    import libcachesim

    base = libcachesim.cache.CacheBase
    return [
        name
        for name, item in vars(libcachesim).items()
        if inspect.isclass(item) and issubclass(item, base) and item is not base and name != "PluginCache"
    ]


def run_one(name: str, trace: str, pages: int) -> None:
    """Runs one algorithm and prints seconds, requests and miss ratio."""
    import libcachesim as lib

    options = lib.ReaderInitParam(ignore_obj_size=True)
    reader = lib.TraceReader(trace, lib.TraceType.ORACLE_GENERAL_TRACE, options)
    # Twice as many buckets as objects: faster than the default of 2^24.
    cache = getattr(lib, name)(cache_size=pages, hashpower=pages.bit_length() + 1)
    start = time.process_time()
    miss_ratio, _ = cache.process_trace(reader)
    seconds = time.process_time() - start
    print(seconds, reader.get_num_of_req(), miss_ratio)


def measure_peer(row: Row, name: str, trace: str, pages: str) -> str | None:
    """Adds one run of an algorithm; the reason if it did not work."""
    command = [sys.executable, __file__, "--one", name, trace, pages]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return f"longer than {TIMEOUT_S} s"
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        return lines[-1] if lines else f"signal {-done.returncode}"
    seconds, requests, row.miss_ratio = map(float, done.stdout.split()[-3:])
    row.rates.append(requests / seconds / 1e6)
    return None


def measure_ours(row: Row, measure: str, case: str) -> None:
    """Adds one run of the model."""
    done = subprocess.run([measure, case], capture_output=True, text=True, check=True)
    _, touches, faults, seconds = done.stdout.strip().split("\t")
    row.rates.append(int(touches) / float(seconds) / 1e6)
    row.miss_ratio = int(faults) / int(touches)


def compare(trace: str, pages: str, case: str, measure: str, rounds: int) -> None:
    """Runs all and prints a table in Markdown."""
    peers = {name: Row() for name in algorithms()}
    failed: dict[str, str] = {}
    ours = Row()
    names = list(peers)
    for _ in range(rounds):
        for at, name in enumerate(names):
            if at % OURS_EVERY == 0:
                measure_ours(ours, measure, case)
            if reason := measure_peer(peers[name], name, trace, pages):
                failed[name] = reason
        ranked = sorted((row.median, name) for name, row in peers.items() if row.rates)
        names = [name for _, name in reversed(ranked[-FASTEST:])]
    print("| algorithm | M requests/s | min–max | runs | miss ratio | lowmark is |")
    print("|---|---:|---:|---:|---:|---:|")
    print(line("**lowmark**", ours, ours))
    by_speed = sorted(peers.items(), key=lambda item: -item[1].median if item[1].rates else 0)
    for name, row in by_speed:
        if row.rates:
            print(line(name, row, ours))
    print()
    for name, reason in failed.items():
        print(f"- {name} did not run: {reason}")
    name, fastest = by_speed[0]
    worst, best = (pick(ours.rates) / other(fastest.rates) for pick, other in ((min, max), (max, min)))
    print(
        f"- lowmark against the fastest, {name}: {ours.median / fastest.median:.2f} times as fast "
        f"(from {worst:.2f} to {best:.2f} over all pairs of runs)"
    )


def line(name: str, row: Row, ours: Row) -> str:
    return (
        f"| {name} | {row.median:.2f} | {row.spread()} | {len(row.rates)} | {row.miss_ratio:.4f} "
        f"| {ours.median / row.median:.2f}× |"
    )


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--one", name, trace, pages]:
            run_one(name, trace, int(pages))
        case [trace, pages, case_name, measure]:
            compare(trace, pages, case_name, measure, 5)
        case [trace, pages, case_name, measure, rounds]:
            compare(trace, pages, case_name, measure, int(rounds))
        case _:
            sys.exit(__doc__)
