"""Reads the whole state of a solver's pipeline."""

from collections.abc import Mapping

import msgspec

from windlass.domain.values.times import format_moment
from windlass.fuzzing.buckets.layout import coverage_key
from windlass.fuzzing.findings.store import FindingStore
from windlass.fuzzing.findings.untriaged import Untriaged
from windlass.fuzzing.state.documents import Lease
from windlass.fuzzing.state.leases import is_live
from windlass.fuzzing.state.pipeline import Pipeline


class ScheduledCommit(msgspec.Struct, frozen=True, kw_only=True):
    """One commit of the schedule."""

    hash: str
    fuzz_count: int


class ActiveLease(msgspec.Struct, frozen=True, kw_only=True):
    """A commit that someone is working on."""

    commit: str
    work: str
    holder: str
    until: str
    tries: int


class FindingSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One finding in short."""

    key: str
    title: str
    state: str
    introduced_by: str | None
    kind: str = "crash"
    suspects: int = 1


class UnhealthyCommit(msgspec.Struct, frozen=True, kw_only=True):
    """A commit of the pipeline whose last runs did nothing, or whose build raised an alarm."""

    commit: str
    runs: int
    why: str
    at: str


class PipelineStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one solver; `unreadable` lists errors about findings that cannot be read."""

    solver: str
    bucket: str
    last_checked_commit: str | None
    checked_at: str | None
    queue: tuple[str, ...]
    built: tuple[str, ...]
    failed: tuple[str, ...]
    schedule: list[ScheduledCommit]
    at_work: list[ActiveLease]
    findings: list[FindingSummary]
    unreadable: list[str]
    coverage_mapped_at: str | None
    coverage_bytes: int
    unhealthy: list[UnhealthyCommit] = []
    untriaged: int = 0


async def read_status(pipeline: Pipeline) -> PipelineStatus:
    """Reads everything once."""
    state = await pipeline.state.read()
    queue = await pipeline.queue.read()
    schedule = await pipeline.schedule.read()
    leases = await pipeline.leases.read()
    key = coverage_key(pipeline.solver)
    folder = key.rpartition("/")[0]
    unreadable: list[str] = []
    known = {*queue.queue, *queue.built, *queue.failed, *(entry.hash for entry in schedule)}
    mapped = [item async for item in pipeline.bucket.list(folder) if item.key == key]
    return PipelineStatus(
        solver=pipeline.solver,
        bucket=pipeline.bucket.name,
        last_checked_commit=state.last_checked_commit,
        checked_at=format_moment(state.checked_at_ms) if state.checked_at_ms else None,
        queue=queue.queue,
        built=queue.built,
        failed=queue.failed,
        schedule=[ScheduledCommit(hash=e.hash, fuzz_count=e.fuzz_count) for e in schedule],
        at_work=[
            *_at_work("build", leases.build, pipeline.now_ms()),
            *_at_work("fuzz", leases.fuzz, pipeline.now_ms()),
        ],
        findings=[
            FindingSummary(
                key=f.key,
                title=f.title,
                state=f.state,
                introduced_by=f.introduced_by,
                kind=f.kind,
                suspects=max(len(f.suspects), 1),
            )
            async for f in FindingStore(pipeline).all(unreadable.append)
        ],
        unreadable=unreadable,
        coverage_mapped_at=format_moment(mapped[0].modified_ms) if mapped else None,
        coverage_bytes=mapped[0].size if mapped else 0,
        unhealthy=[
            UnhealthyCommit(commit=c, runs=bad.runs, why=bad.why, at=format_moment(bad.at_ms))
            for c, bad in (await pipeline.health.read()).commits.items()
            if c in known
        ],
        untriaged=sum(map(len, (await Untriaged(pipeline).commits()).values())),
    )


def _at_work(work: str, leases: Mapping[str, Lease], now_ms: int) -> list[ActiveLease]:
    return [
        ActiveLease(
            commit=commit, work=work, holder=lease.holder, until=format_moment(lease.until_ms),
            tries=lease.tries,
        )
        for commit, lease in leases.items()
        if is_live(lease, now_ms)
    ]  # fmt: skip
