"""Runs the model's own cases in rounds and prints tables in Markdown.

usage: figures.py EXAMPLES_DIRECTORY [ROUNDS]

A round runs every case once, one group of cases per process, so that a disturbance of the machine spreads
over all. Tables show the median and, in brackets, the lowest and the highest value.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
from collections import defaultdict

RAM_MIB = [128, 512, 2048, 8192, 65536]
"""Machines of the growth table; the largest is run once."""
FOOTPRINT_GIB = 64

Run = tuple[int, int, float]
"""Touches, faults, seconds."""


def measure(program: str, prefix: str) -> list[tuple[str, Run]]:
    """Runs the cases whose names begin with the prefix, in one process."""
    done = subprocess.run([program, prefix], capture_output=True, text=True, check=True)
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return [(name, (int(touches), int(faults), float(seconds))) for name, touches, faults, seconds in rows]


def spread(values: list[float], digits: int = 1) -> str:
    """Median with the extremes."""
    low, middle, high = (f"{f(values):.{digits}f}" for f in (min, statistics.median, max))
    return f"{middle} ({low}–{high})" if len(values) > 1 else middle


def rate_table(runs: dict[str, list[Run]], prefix: str, what: int, unit: str) -> None:
    print(f"| case | M {unit}/s |\n|---|---:|")
    for name, of_case in runs.items():
        if name.startswith(prefix):
            print(f"| {name} | {spread([run[what] / run[2] / 1e6 for run in of_case])} |")
    print()


def growth_tables(runs: dict[str, list[Run]]) -> None:
    print("| RAM | ns per fault in steady reclaim | seconds in all |\n|---|---:|---:|")
    for mib in RAM_MIB:
        short, long = (runs[f"growth {mib} MiB, {millions} M touches"] for millions in (1, 5))
        costs = [(b[2] - a[2]) / (b[1] - a[1]) * 1e9 for a, b in zip(short, long)]
        size = f"{mib} MiB" if mib < 1024 else f"{mib // 1024} GiB"
        print(f"| {size} | {spread(costs, 0)} | {spread([run[2] for run in long], 2)} |")
    print("\n| touches | seconds | ns per touch |\n|---|---:|---:|")
    for millions in (1, 2, 4, 8):
        of_case = runs[f"growth 256 MiB, {millions} M touches"]
        seconds = [run[2] for run in of_case]
        per_touch = [run[2] / run[0] * 1e9 for run in of_case]
        print(f"| {millions} M | {spread(seconds, 2)} | {spread(per_touch, 0)} |")
    print()


def footprint_table(program: str) -> None:
    def run(gib: int, kind: str) -> list[str]:
        done = subprocess.run([program, str(gib), kind], capture_output=True, text=True, check=True)
        return done.stdout.strip().split("\t")

    print("| memory | pages of RAM | peak, MiB | bytes per page | swapped out | outcome |")
    print("|---|---:|---:|---:|---:|---|")
    for kind in ("anon", "shmem"):
        empty = int(run(0, kind)[1])
        pages, peak, swapped, outcome = run(FOOTPRINT_GIB, kind)
        per_page = (int(peak) - empty) / int(pages)
        print(f"| {kind} | {pages} | {int(peak) / 2**20:.0f} | {per_page:.1f} | {swapped} | {outcome} |")
    print()


def main(directory: str, rounds: int) -> None:
    runs: dict[str, list[Run]] = defaultdict(list)
    huge = f"growth {RAM_MIB[-1]} MiB"
    names = [f"growth {mib} MiB" for mib in (256, *RAM_MIB[:-1])]
    for at in range(rounds):
        for prefix in ["resident", "reclaim", *names, *([huge] if at == 0 else [])]:
            for name, run in measure(f"{directory}/measure", prefix):
                runs[name].append(run)
    print("Touches of resident pages:\n")
    rate_table(runs, "resident", 0, "touches")
    print("Faults under steady reclaim:\n")
    rate_table(runs, "reclaim", 1, "faults")
    print("Growth:\n")
    growth_tables(runs)
    print(f"Memory for a machine of {FOOTPRINT_GIB} GiB:\n")
    footprint_table(f"{directory}/footprint")


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit(__doc__)
    main(sys.argv[1], int(sys.argv[2]) if len(sys.argv) == 3 else 5)
