"""What a person waits for in a real browser, beside what was promised.

    make bench-browser
    make bench-browser ARGS="--jobs 50000 list graph"

Tasks of the main thread count by their processor time: the clock also counts what else the machine
does. The exit code says whether all bounds are kept.
"""

import argparse
import sys
from collections.abc import Callable, Mapping
from typing import Final

from playwright.sync_api import Browser

from benchmarks.browser import parts
from benchmarks.browser.parts import Figure, Sizes
from tests.dashboard.farm import Farm, running_browser

Part = Callable[[Browser, Farm, Sizes], list[Figure]]
PARTS: Final[Mapping[str, Part]] = {
    "first": lambda browser, farm, _: parts.first_view(browser, farm),
    "list": parts.long_list,
    "graph": parts.large_graph,
    "log": parts.large_log,
}


def show(figure: Figure) -> str:
    """Returns a line of the table; `!` marks what is beyond its bound."""
    mark = " " if figure.is_kept else "!"
    bound = "" if figure.bound is None else f"at most {figure.bound:g} {figure.unit}".rstrip()
    value = f"{figure.value:,.1f} {figure.unit}".rstrip()
    return f"{mark} {figure.name:38} {value:>12}   {bound:16} {figure.note}".rstrip()


def main() -> None:
    """Prints the table."""
    usual = Sizes()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=usual.jobs)
    parser.add_argument("--wheels", type=int, default=usual.wheels)
    parser.add_argument("--nodes", type=int, default=usual.nodes)
    parser.add_argument("--lines", type=int, default=usual.lines)
    parser.add_argument("parts", nargs="*", help=f"some of: {', '.join(PARTS)}")
    given = parser.parse_args()
    unknown = set(given.parts) - set(PARTS)
    if unknown:
        parser.error(f"expected parts among {', '.join(PARTS)}, got {', '.join(sorted(unknown))}")
    sizes = Sizes(given.jobs, given.wheels, given.nodes, given.lines)
    is_fine = True
    with parts.large_farm(sizes.jobs) as farm, running_browser() as browser:
        print(f"{sizes.jobs:,} jobs")
        for name in given.parts or PARTS:
            for figure in PARTS[name](browser, farm, sizes):
                print(show(figure), flush=True)
                is_fine = is_fine and figure.is_kept
    sys.exit(not is_fine)


if __name__ == "__main__":
    main()
