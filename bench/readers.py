"""Times the readers of traces against the tools of the field, and writes the figures as Markdown.

Every round runs each program once, one after the other, so that all meet the same machine; rounds are
repeated, and the ratios of one round are what counts. Times are seconds on the CPU of the whole process, start
and decompression apart: inputs are plain files, as large as is said.

usage: readers.py LOWMARK CAPTURES SCRIPT ROUNDS

SCRIPT is trace-vmscan-postprocess.pl, or `-` if it is not there; `perf` is taken from the path.
"""

from __future__ import annotations

import lzma
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

TEXT = "vm-6.18-swap-seq-520m-classic"
"""Capture that is read as ftrace text; the largest that is there if it is not."""
COPIES = 8
"""How often it stands in the file that is read."""
STREAM_BYTES = 4 << 30
"""Length of the text that goes through a pipe."""


def run(command: list[str], stdin=None) -> tuple[float, int]:
    """CPU seconds of a command, and its peak resident set, MiB."""
    child = subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode not in (0, 2):
        raise RuntimeError(f"{command}: status {child.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss // 1024


def unpack(source: Path, target: Path, copies: int = 1) -> bytes:
    data = lzma.decompress(source.read_bytes())
    with target.open("wb") as out:
        for _ in range(copies):
            out.write(data)
    return data


def main() -> None:
    lowmark, captures, script, rounds = sys.argv[1], Path(sys.argv[2]), sys.argv[3], int(sys.argv[4])
    texts = sorted(captures.glob("*.trace.txt.xz"), key=lambda path: path.stat().st_size)
    chosen = next((path for path in texts if path.name.startswith(TEXT)), texts[-1])
    with tempfile.TemporaryDirectory() as place:
        text = Path(place) / "trace.txt"
        data = unpack(chosen, text, COPIES)
        lines = data.count(b"\n") * COPIES
        cases = {"ftrace text": ([lowmark, "report", str(text), "--format", "json"], lines)}
        if script != "-" and shutil.which("perl"):
            cases["trace-vmscan-postprocess.pl"] = (["sh", "-c", f"perl {script} < {text}"], lines)
        perf_data = next(iter(sorted(captures.glob("*.perf.data.xz"))), None)
        if perf_data:
            path = Path(place) / "perf.data"
            unpack(perf_data, path)
            records = lzma.decompress(
                Path(str(perf_data).replace(".perf.data", ".perf-script.txt")).read_bytes()
            ).count(b"\n")
            cases["perf.data"] = ([lowmark, "report", str(path), "--format", "json"], records)
            if shutil.which("perf"):
                cases["perf script"] = (["perf", "script", "-i", str(path)], records)
        dats = sorted(captures.glob("*.trace.dat.xz"), key=lambda path: path.stat().st_size)
        if dats:
            path = Path(place) / "trace.dat"
            unpack(dats[-1], path)
            import json

            done = subprocess.run(
                [lowmark, "report", str(path), "--format", "json"], capture_output=True, check=True
            )
            cases["trace.dat"] = (
                [lowmark, "report", str(path), "--format", "json"],
                json.loads(done.stdout)["lines"],
            )
        rates: dict[str, list[float]] = {name: [] for name in cases}
        start, _ = run([lowmark, "--version"])
        for _ in range(rounds):
            for name, (command, events) in cases.items():
                seconds, _ = run(command)
                rates[name].append(events / max(seconds - start, 1e-6) / 1e6)
        print(f"Reading `{chosen.name}` {COPIES} times over ({lines} lines), and the binary captures:")
        print()
        print("| what | M events/s | min–max | lowmark's ftrace text is |")
        print("|---|---:|---:|---:|")
        own = rates["ftrace text"]
        for name, values in rates.items():
            ratio = statistics.median(a / b for a, b in zip(own, values))
            print(
                f"| {name} | {statistics.median(values):.2f} "
                f"| {min(values):.2f}–{max(values):.2f} | {ratio:.1f}× |"
            )
        print()
        # A long stream: the text again and again, through a pipe.
        writer = (
            "import sys\n"
            "data=open(sys.argv[1],'rb').read()\nleft=int(sys.argv[2])\n"
            "while left>0:\n sys.stdout.buffer.write(data); left-=len(data)\n"
        )
        producer = subprocess.Popen(
            [sys.executable, "-c", writer, str(text), str(STREAM_BYTES)], stdout=subprocess.PIPE
        )
        seconds, peak = run([lowmark, "report", "-", "--format", "json"], stdin=producer.stdout)
        producer.wait()
        total = STREAM_BYTES / len(data) * lines / COPIES
        print(
            f"A stream of {STREAM_BYTES >> 30} GiB through a pipe: {total / seconds / 1e6:.2f} M events/s, "
            f"at most {peak} MiB resident."
        )


if __name__ == "__main__":
    main()
