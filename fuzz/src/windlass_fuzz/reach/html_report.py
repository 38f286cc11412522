"""Makes the HTML coverage report of a commit: the pages of each target, and a list of them.

A target that cannot be measured says why in that list and stops nothing. Without a matrix there is
one target, and the first page is the tool's own.
"""

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.builds.build_cache import LocalBuild
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.coverage.html import INDEX
from windlass_fuzz.coverage.reach import Reach
from windlass_fuzz.findings.markdown import count_of
from windlass_fuzz.reach.html_store import ReportInfo, TargetReport
from windlass_fuzz.reach.measurement import measurement_of
from windlass_fuzz.state.pipeline import Pipeline

REPORT_MS: Final = 30 * 60_000  # for running the inputs of all targets


class TargetInputs(NamedTuple):
    """A target with the solver file as it is for it alone, and the inputs to run."""

    target: str
    solver: Solver
    inputs: Sequence[Path]


@dataclass(frozen=True, slots=True)
class ReportMaker:
    """Makes reports of one coverage build; its sources are checked out in `sources`."""

    pipeline: Pipeline
    build: LocalBuild
    sources: Path
    scratch: Path
    cores: int = 1
    notify: Callable[[str], None] = lambda _: None

    async def make(self, commit: str, targets: Sequence[TargetInputs], pages: Path) -> ReportInfo:
        """Writes all pages to a folder; raises if no target wrote any coverage."""
        clock = self.pipeline.runtime.clock
        together = Reach()
        until = clock.now_ms() + REPORT_MS
        made: list[TargetReport] = []
        for number, one in enumerate(targets):
            now = clock.now_ms()
            own_until = now + (until - now) // (len(targets) - number)
            made.append(await self._try_target(one, pages, own_until, together, len(targets) > 1))
        tools = [one.tool for one in made if one.tool]
        if not tools:
            raise WindlassError("; ".join(dict.fromkeys(one.problem for one in made)))
        if len(targets) > 1:
            (pages / INDEX).write_text(_list_page(commit, made))
        share = together.share()
        return ReportInfo(
            id=f"{clock.now_ms()}-{self.pipeline.runtime.nonce()}", commit=commit,
            made_at_ms=clock.now_ms(), tool=tools[0], inputs=sum(one.inputs for one in made),
            complete=all(one.complete for one in made), functions=share.functions,
            all_functions=share.all_functions, lines=share.lines, all_lines=share.all_lines,
            targets=made if len(targets) > 1 else [],
        )  # fmt: skip

    async def _try_target(
        self, one: TargetInputs, pages: Path, until_ms: int, together: Reach, several: bool
    ) -> TargetReport:
        try:
            return await self._target(one, pages, until_ms, together, several)
        except WindlassError as error:
            if not several:
                raise
            self.notify(f"no HTML report of {one.target}: {error}")
            return TargetReport(target=one.target, inputs=len(one.inputs), problem=str(error))

    async def _target(
        self, one: TargetInputs, pages: Path, until_ms: int, together: Reach, several: bool
    ) -> TargetReport:
        name = f" of {one.target}" if several else ""
        self.notify(f"HTML report{name} from {count_of(len(one.inputs), 'input')}")
        folder = self.scratch / f"counts-{len(list(self.scratch.iterdir()))}"
        folder.mkdir()
        clock = self.pipeline.runtime.clock
        measurement = measurement_of(one.solver, self.build, folder, clock, self.cores)
        complete = await measurement.add(one.inputs, until_ms)
        reach = await measurement.read()
        share = reach.share()
        if not share.functions:
            raise WindlassError("no input wrote any coverage")
        first = len(list(pages.iterdir())) if several else None
        shown = await measurement.make_html(reach, self.sources, pages, first)
        together.add(reach)
        return TargetReport(
            target=one.target, page=shown.first_page, tool=shown.tool, inputs=len(one.inputs),
            complete=complete, functions=share.functions, all_functions=share.all_functions,
            lines=share.lines, all_lines=share.all_lines,
        )  # fmt: skip


def _list_page(commit: str, targets: Sequence[TargetReport]) -> str:
    """Returns the first page of a report about several targets."""
    rows = "\n".join(_row(one) for one in targets)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Coverage</title>'
        "</head><body>\n"
        f"<h1>Coverage of {html.escape(commit[:12])} by target</h1>\n"
        "<table><tr><th>target</th><th>functions</th><th>lines</th><th>inputs</th><th></th></tr>\n"
        f"{rows}\n</table></body></html>\n"
    )


def _row(one: TargetReport) -> str:
    name = html.escape(one.target)
    if one.problem:
        return f'<tr><td>{name}</td><td colspan="4">{html.escape(one.problem)}</td></tr>'
    note = "" if one.complete else "not all inputs ran in time"
    return (
        f'<tr><td><a href="{one.page}">{name}</a></td>'
        f"<td>{one.functions} of {one.all_functions}</td><td>{one.lines} of {one.all_lines}</td>"
        f"<td>{one.inputs}</td><td>{note}</td></tr>"
    )
