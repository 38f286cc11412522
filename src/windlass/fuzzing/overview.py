"""Everything there is to know of a solver's pipeline at a glance."""

from collections.abc import Mapping

import msgspec

from windlass.domain.values.times import format_moment
from windlass.fuzzing.board import Board
from windlass.fuzzing.findings.shelf import Shelf
from windlass.fuzzing.layout import coverage_key
from windlass.fuzzing.leases import is_live
from windlass.fuzzing.state import Lease


class Scheduled(msgspec.Struct, frozen=True, kw_only=True):
    """One commit of the schedule."""

    hash: str
    fuzz_count: int


class AtWork(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody on a commit."""

    commit: str
    work: str
    holder: str
    until: str
    tries: int


class Found(msgspec.Struct, frozen=True, kw_only=True):
    """One finding in a line."""

    key: str
    title: str
    state: str
    introduced_by: str | None


class Overview(msgspec.Struct, frozen=True, kw_only=True):
    """The state of one solver; lists in their own order. `unreadable` names findings that are."""

    solver: str
    bucket: str
    last_checked_commit: str | None
    checked_at: str | None
    queue: tuple[str, ...]
    built: tuple[str, ...]
    failed: tuple[str, ...]
    schedule: list[Scheduled]
    at_work: list[AtWork]
    findings: list[Found]
    unreadable: list[str]
    coverage_mapped_at: str | None
    coverage_bytes: int


async def look_at(board: Board) -> Overview:
    """Read everything once."""
    state = await board.state.read()
    queue = await board.queue.read()
    schedule = await board.schedule.read()
    leases = await board.leases.read()
    key = coverage_key(board.solver)
    folder = key.rpartition("/")[0]
    unreadable: list[str] = []
    mapped = [item async for item in board.bucket.list(folder) if item.key == key]
    return Overview(
        solver=board.solver,
        bucket=board.bucket.name,
        last_checked_commit=state.last_checked_commit,
        checked_at=format_moment(state.checked_at_ms) if state.checked_at_ms else None,
        queue=queue.queue,
        built=queue.built,
        failed=queue.failed,
        schedule=[Scheduled(hash=e.hash, fuzz_count=e.fuzz_count) for e in schedule],
        at_work=[
            *_at_work("build", leases.build, board.now_ms()),
            *_at_work("fuzz", leases.fuzz, board.now_ms()),
        ],
        findings=[
            Found(key=f.key, title=f.title, state=f.state, introduced_by=f.introduced_by)
            async for f in Shelf(board).all(unreadable.append)
        ],
        unreadable=unreadable,
        coverage_mapped_at=format_moment(mapped[0].modified_ms) if mapped else None,
        coverage_bytes=mapped[0].size if mapped else 0,
    )


def _at_work(work: str, leases: Mapping[str, Lease], now_ms: int) -> list[AtWork]:
    return [
        AtWork(
            commit=commit, work=work, holder=lease.holder, until=format_moment(lease.until_ms),
            tries=lease.tries,
        )
        for commit, lease in leases.items()
        if is_live(lease, now_ms)
    ]  # fmt: skip
