"""Measure the engine on each store beside raw loops: `python -m benchmarks.core [section …]`.

Prints a table and writes `benchmarks/results/core.json`. Sections are named below; without
names all of them run. `--quick` is for a first look; `--long` adds what takes minutes.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks import report
from benchmarks.options import Options
from benchmarks.report import Row
from benchmarks.sections import (
    budgets,
    claims,
    group_commit,
    memory,
    postgres,
    sqlite,
    workflows,
)

SECTIONS: dict[str, Callable[[Options], list[Row]]] = {
    "sqlite": sqlite.run,
    "postgres": postgres.run,
    "group-commit": group_commit.run,
    "claims": claims.run,
    "budgets": budgets.run,
    "memory": memory.run,
    "workflows": workflows.run,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(SECTIONS))
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer rounds")
    parser.add_argument("--long", action="store_true", help="also what takes minutes")
    given = parser.parse_args()
    unknown = sorted(set(given.sections) - SECTIONS.keys())
    if unknown:
        parser.error(f"expected some of {', '.join(SECTIONS)}, got {', '.join(unknown)}")
    report.RESULTS.mkdir(exist_ok=True)
    rows: list[Row] = []
    for name in given.sections or SECTIONS:
        # Beside the results, so that it is a real disk and not a temporary one in memory.
        with tempfile.TemporaryDirectory(dir=report.RESULTS) as folder:
            started = time.monotonic()
            options = Options(folder=Path(folder), quick=given.quick, long=given.long)
            found = SECTIONS[name](options)
            took = time.monotonic() - started
        print(f"{report.table(found)}\n({name} took {took:.0f} s)\n", flush=True)
        rows += found
    print(f"written to {report.write(rows, 'core')}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
