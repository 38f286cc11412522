"""The whole check: reads log and state in one view, replays, compares and recounts."""

from collections.abc import Iterable

from windlass.domain.config import Config
from windlass.domain.rows.events import Event
from windlass.engine.verify import compare
from windlass.engine.verify.baseline import load, seed_ended, settle_seeded
from windlass.engine.verify.past import Findings, SnapshotIndex, Violation
from windlass.engine.verify.replay import Replay
from windlass.engine.verify.safety import CHECKS, check_indices, retry_check
from windlass.ports.loop_time import aside, gc_paused, give_way_if_long
from windlass.store.sql.snapshot import Snapshot
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store

CHUNK = 1_000  # events read at once


async def verify(store: Store, config: Config | None = None) -> list[Violation]:
    """Returns every violation, an empty list if there is none.

    It reads the whole log; memory grows with the jobs, not with the events. Log and state come
    from one snapshot, so others may write meanwhile.
    """

    async def check(tx: ReadTx, snapshot: Snapshot) -> list[Violation]:
        weight = len(snapshot.jobs)
        replay = await aside(weight, lambda: _replay_over(snapshot, config or Config()))
        await _replay_log(tx, replay)
        found = await aside(weight, lambda: _conclude(replay))
        await replay.release()
        return found

    with gc_paused():  # which would walk all jobs again and again
        return await store.read_beside(check)


def judge(
    events: Iterable[Event], snapshot: Snapshot, config: Config | None = None
) -> list[Violation]:
    """Checks events and a snapshot that the caller has read."""
    replay = _replay_over(snapshot, config or Config())
    for event in events:
        replay.apply(event)
    return _conclude(replay)


def _replay_over(snapshot: Snapshot, config: Config) -> Replay:
    replay = Replay(SnapshotIndex(snapshot), Findings(), (*CHECKS, retry_check(config)))
    load(replay, snapshot.baseline)
    seed_ended(replay)
    return replay


async def _replay_log(tx: ReadTx, replay: Replay) -> None:
    after = replay.past.seq
    while chunk := await tx.log.read(after, CHUNK):
        for event in chunk:
            replay.apply(event)
        after = chunk[-1].seq
        await give_way_if_long()


def _conclude(replay: Replay) -> list[Violation]:
    known, past, found = replay.known, replay.past, replay.found
    settle_seeded(replay)
    for job, seq in past.missing.items():
        found.add("S1", "the log has a job that does not exist", job, seq)
    compare.compare(known, past, found)
    compare.check_places(known, past, found)
    compare.check_suspects(known, found)
    compare.check_suspended(known, found)
    compare.check_counts(known, past, found)
    compare.check_schedules(known, past, found)
    compare.check_order(known, found)
    compare.check_pools(known, past, found)
    check_indices(known, found)
    return found.violations
