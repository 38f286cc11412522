"""Gauges about commit fuzzing, for servers that show it (`--fuzz`)."""

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from prometheus_client.metrics_core import Metric as Family

from windlass.domain.values.quantities import parse_moment
from windlass.server.metrics.catalogue import Metric, Scope
from windlass.server.metrics.series import gauge_of
from windlass_fuzz.server.messages import FuzzSolver

if TYPE_CHECKING:
    from windlass_fuzz.server.reader import BucketReader

MAX_SOLVERS: Final = 100  # values of `solver`
PATIENCE_S: Final = 2.0  # a scrape waits no longer than this for a bucket
STATES: Final = ("open", "flaky", "quarantined", "closed")
PLACES: Final = ("queue", "built", "failed", "schedule")


def _gauge(name: str, text: str, labels: str = "solver") -> Metric:
    return Metric(f"windlass_fuzz_{name}", "gauge", text, Scope.STORE, tuple(labels.split()))


READABLE: Final = _gauge("readable", "1 if the state of a solver's fuzzing can be read.")
UNHEALTHY: Final = _gauge(
    "unhealthy_commits", "Commits to be fuzzed whose build or last runs raised an alarm."
)
FINDINGS: Final = _gauge("findings", "Findings by state.", "solver state")
COMMITS: Final = _gauge("commits", "Commits by place in the pipeline.", "solver place")
UNTRIAGED: Final = _gauge("untriaged_inputs", "Inputs that broke a build and wait for triage.")
LAST_RUN: Final = _gauge("last_run_seconds", "When the last run of a fuzzer ended, since 1970.")
METRICS: Final = (READABLE, UNHEALTHY, FINDINGS, COMMITS, UNTRIAGED, LAST_RUN)


async def families(reader: "BucketReader | None") -> list[Family]:
    """Returns the gauges; none if the server shows no solver."""
    if reader is None:
        return []
    solvers = (await reader.solvers(PATIENCE_S))[:MAX_SOLVERS]
    return list(_families(solvers)) if solvers else []


def _families(solvers: Sequence[FuzzSolver]) -> Iterator[Family]:
    known = [one for one in solvers if one.problem is None]
    yield gauge_of(READABLE, {(one.name,): one.problem is None for one in solvers})
    yield gauge_of(UNHEALTHY, {(one.name,): one.unhealthy for one in known})
    findings = {(one.name, s): one.counts.get(s, 0) for one in known for s in STATES}
    yield gauge_of(FINDINGS, findings)
    commits = {(one.name, p): one.counts.get(p, 0) for one in known for p in PLACES}
    yield gauge_of(COMMITS, commits)
    waiting = {(one.name,): one.counts.get("untriaged", 0) for one in known}
    yield gauge_of(UNTRIAGED, waiting)
    ended = {
        (one.name,): parse_moment(one.last_run_at, "last_run_at") / 1000
        for one in known
        if one.last_run_at is not None
    }
    yield gauge_of(LAST_RUN, ended)
