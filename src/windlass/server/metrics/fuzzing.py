"""Gauges about commit fuzzing, for servers that show it (`--fuzz`)."""

from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client.metrics_core import Metric as Family

from windlass.domain.values.quantities import parse_moment
from windlass.ports.fuzzing import FuzzingReader
from windlass.server.metrics.catalogue import MAX_SOLVERS
from windlass.server.metrics.series import gauge
from windlass.wire.fleet.fuzzing import FuzzSolver

PATIENCE_S: Final = 2.0  # a scrape waits no longer for a bucket
STATES: Final = ("open", "flaky", "quarantined", "closed")
PLACES: Final = ("queue", "built", "failed", "schedule")


async def fuzzing_families(reader: FuzzingReader) -> list[Family]:
    """Returns the gauges; none if the server shows no solver."""
    solvers = (await reader.solvers(PATIENCE_S))[:MAX_SOLVERS]
    return list(_families(solvers)) if solvers else []


def _families(solvers: Sequence[FuzzSolver]) -> Iterator[Family]:
    known = [one for one in solvers if one.problem is None]
    yield gauge("windlass_fuzz_readable", {(one.name,): one.problem is None for one in solvers})
    yield gauge("windlass_fuzz_unhealthy_commits", {(one.name,): one.unhealthy for one in known})
    findings = {(one.name, s): one.counts.get(s, 0) for one in known for s in STATES}
    yield gauge("windlass_fuzz_findings", findings)
    commits = {(one.name, p): one.counts.get(p, 0) for one in known for p in PLACES}
    yield gauge("windlass_fuzz_commits", commits)
    waiting = {(one.name,): one.counts.get("untriaged", 0) for one in known}
    yield gauge("windlass_fuzz_untriaged_inputs", waiting)
    ended = {
        (one.name,): parse_moment(one.last_run_at, "last_run_at") / 1000
        for one in known
        if one.last_run_at is not None
    }
    yield gauge("windlass_fuzz_last_run_seconds", ended)
