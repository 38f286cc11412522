"""The command line that both benchmarks have: sections by name, one table each, one file."""

import argparse
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks import report
from benchmarks.options import Options
from benchmarks.report import Row

Sections = Mapping[str, Callable[[Options], list[Row]]]


def run_sections(name: str, about: str | None, sections: Sections) -> None:
    """Run the sections that the command line names, else all; write `name`.json."""
    parser = argparse.ArgumentParser(prog=f"benchmarks.{name}", description=about)
    parser.add_argument("sections", nargs="*", metavar="section", help=", ".join(sections))
    parser.add_argument("--quick", action="store_true", help="smaller sizes, fewer rounds")
    parser.add_argument(
        "--long", action="store_true", help="also what takes minutes, if a section has any"
    )
    given = parser.parse_args()
    unknown = sorted(set(given.sections) - sections.keys())
    if unknown:
        parser.error(f"expected some of {', '.join(sections)}, got {', '.join(unknown)}")
    report.RESULTS.mkdir(exist_ok=True)
    rows: list[Row] = []
    for section in given.sections or sections:
        # Beside the results, so that it is a real disk and not a temporary one in memory.
        with tempfile.TemporaryDirectory(dir=report.RESULTS) as folder:
            began = time.monotonic()
            options = Options(folder=Path(folder), quick=given.quick, long=given.long)
            found = sections[section](options)
            took = time.monotonic() - began
        print(f"{report.table(found)}\n({section} took {took:.0f} s)\n", flush=True)
        rows += found
    print(f"written to {report.write(rows, name)}")
