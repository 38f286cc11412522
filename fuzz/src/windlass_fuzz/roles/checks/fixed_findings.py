"""Open findings of the bucket that a change fixes, for its summary."""

from collections.abc import Awaitable, Callable
from typing import Final, NamedTuple

import msgspec

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.findings.judge import Reproduction
from windlass_fuzz.findings.record import Finding
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.trackers.options import issue_options

MAX_FINDINGS: Final = 20  # maximum findings that are run


class FixedFinding(msgspec.Struct, kw_only=True):
    """A finding whose input fails with the base and runs fine with the change."""

    key: str
    title: str


class BothRuns(NamedTuple):
    """How the builds of base and change run the input of a finding."""

    before: Reproduction
    after: Reproduction


async def fixed_findings(
    solver: Solver,
    pipeline: Pipeline,
    run: Callable[[Finding], Awaitable[BothRuns | None]],
    until_ms: int,
    notify: Callable[[str], None],
) -> list[FixedFinding]:
    """Returns what a change fixes, without findings whose issues are private.

    `run` returns None if a build is missing.
    """
    options = issue_options(solver.issues)
    fixed: list[FixedFinding] = []
    tried = 0
    try:
        async for finding in FindingStore(pipeline).all(notify):
            private = options is not None and options.is_private(finding)
            if (
                not finding.live
                or private
                or tried >= MAX_FINDINGS
                or pipeline.now_ms() >= until_ms
            ):
                continue
            tried += 1
            both = await run(finding)
            if both is not None and both.before.shown and both.after.fine:
                fixed.append(FixedFinding(key=finding.key, title=finding.title))
    except WindlassError as error:
        notify(f"cannot tell what the change fixes: {error}")
    return fixed
