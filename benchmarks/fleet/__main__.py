"""Measure the whole system beside its peers: `python -m benchmarks.fleet [section …]`.

Prints a table and writes `benchmarks/results/fleet.json`. Sections are named below; without
names all of them run. `--quick` is for a first look: its figures mean little.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import report
from benchmarks.fleet import big_log, idle_workers, latency, shell, throughput
from benchmarks.options import Options
from benchmarks.report import Row

SECTIONS: dict[str, Callable[[Options], list[Row]]] = {
    "latency": latency.run,
    "throughput": throughput.run,
    "shell": shell.run,
    "idle": idle_workers.run,
    "log": big_log.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(prog="benchmarks.fleet", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer rounds")
    given = parser.parse_args()
    unknown = sorted(set(given.sections) - SECTIONS.keys())
    if unknown:
        parser.error(f"expected some of {', '.join(SECTIONS)}, got {', '.join(unknown)}")
    report.RESULTS.mkdir(exist_ok=True)
    rows: list[Row] = []
    for name in given.sections or SECTIONS:
        # Beside the results, so that it is a real disk and not a temporary one in memory.
        with tempfile.TemporaryDirectory(dir=report.RESULTS) as folder:
            began = time.monotonic()
            found = SECTIONS[name](Options(folder=Path(folder), quick=given.quick))
            took = time.monotonic() - began
        print(f"{report.table(found)}\n({name} took {took:.0f} s)\n", flush=True)
        rows += found
    print(f"written to {report.write(rows, 'fleet')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
