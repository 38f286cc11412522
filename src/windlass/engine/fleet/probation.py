"""Puts suspected workers on probation and brings them back (`domain/matching/probation.py`).

Syncs record failures and test jobs in the worker's row. The health loop compares workers, since
only that needs data about the others.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from windlass.domain.matching.probation import (
    GOOD_TESTS,
    MAX_TROUBLES,
    Blame,
    Conduct,
    Probation,
    Trials,
    Trouble,
    after_failed_test,
    after_tests,
    blame,
    read_conduct,
    unshared,
    with_trouble,
    write_conduct,
)
from windlass.domain.matching.workers import CLAIMING, WorkerStatus
from windlass.domain.rows.records import Worker
from windlass.domain.values.quantities import counted, readable_duration
from windlass.engine.transaction.unit_of_work import Work

ONLINE = int(WorkerStatus.ONLINE)
PROBATION = int(WorkerStatus.PROBATION)

MAX_EVENTS = 20_000  # of the log, in which completions are counted


MAX_PEERS = 200  # running jobs per worker that are compared


class _Running(NamedTuple):
    worker: int
    shape: int
    started_at: int


class ConductReport(NamedTuple):
    """How many workers were put on probation, and how many came back."""

    suspected: int = 0
    back: int = 0


def note_failure(work: Work, worker: Worker, trouble: Trouble) -> Worker:
    """Returns the worker after a failure that may be its fault."""
    work.effects.count("worker_failures")
    config, now = work.config, work.now
    conduct = with_trouble(read_conduct(worker.troubles), trouble, config.bad_worker_window_ms)
    if worker.status == ONLINE and _is_due(len(conduct.troubles), config.bad_worker_jobs):
        work.effects.any_suspects = True
    if worker.status == PROBATION:
        tested = after_failed_test(
            conduct.probation or Probation(), now, 2 * config.heartbeat_interval_ms,
            config.bad_worker_window_ms // 2,
        )  # fmt: skip
        conduct = replace(conduct, probation=tested)
    return worker._replace(troubles=write_conduct(conduct))


def _is_due(failed: int, least: int) -> bool:
    """Returns True if the worker must be judged at once: a bad one fails many jobs in a second."""
    return 0 < least <= failed < MAX_TROUBLES and failed % least == 0


def note_completed(work: Work, worker: Worker, completed: int) -> Worker:
    """Returns a worker on probation after jobs completed there; enough in a row bring it back."""
    conduct = read_conduct(worker.troubles)
    tested = after_tests(conduct.probation or Probation(), completed)
    if tested.good >= GOOD_TESTS:
        return bring_back(work, worker, f"{counted(tested.good, 'job')} in a row completed on it")
    return worker._replace(troubles=write_conduct(replace(conduct, probation=tested)))


def bring_back(work: Work, worker: Worker, why: str) -> Worker:
    """Returns the worker with its full share of jobs again, and without evidence against it."""
    work.say_of(worker, f"Worker {worker.name} is no longer on probation: {why}", status="online")
    return worker._replace(status=ONLINE, reason=None, troubles=None)


async def judge_conduct(work: Work) -> ConductReport:
    """Compares workers that failed jobs with their peers, and changes their status."""
    troubled = await work.tx.workers.troubled()
    least = work.config.bad_worker_jobs
    if not any(_is_candidate(worker, least) for worker in troubled):
        return ConductReport()
    workers = await work.tx.workers.lock([worker.id for worker in troubled])
    fleet = {worker.id: worker for worker in await work.tx.workers.all()} | workers
    noted: dict[int, Conduct] = {
        worker.id: read_conduct(worker.troubles) for worker in workers.values()
    }
    peers = await _Peers.read(work, fleet)
    changed: dict[int, Worker] = {
        worker.id: worker for worker in _returning(work, workers, noted, peers)
    }
    peers.fleet.update(changed)
    back = len(changed)
    if least:
        for worker in await _suspected(work, workers, noted, peers):
            changed[worker.id] = peers.fleet[worker.id] = worker
    await work.tx.workers.update([changed[worker] for worker in sorted(changed)])
    work.effects.pokes += sorted(changed)
    return ConductReport(len(changed) - back, back)


def _is_candidate(worker: Worker, least: int) -> bool:
    if worker.status == PROBATION:
        return True
    return 0 < least <= len(read_conduct(worker.troubles).troubles)


class _Peers:
    """The workers of the fleet, to see whether one can replace another."""

    def __init__(self, work: Work, fleet: dict[int, Worker], wanted: Sequence[int]) -> None:
        self.fleet = fleet
        self._profile = work.catalog.profile
        self._wanted = wanted  # the shapes of ready jobs

    @classmethod
    async def read(cls, work: Work, fleet: dict[int, Worker]) -> "_Peers":
        wanted = [head.shape for head in await work.tx.places.heads()]
        await work.catalog.know(work.tx, wanted)
        return cls(work, fleet, wanted)

    def can_replace(self, worker: Worker) -> bool:
        """Returns True if others in good standing can run all ready jobs that this one can."""
        others = {
            profile.digest: profile
            for other in self.fleet.values()
            if other.status == ONLINE and other.id != worker.id
            for profile in (self._profile(other),)
        }
        mine = self._profile(worker)
        if mine.digest in others:
            return True
        wanted = [shape for shape in self._wanted if mine.runs(shape)]
        return bool(others) and all(
            any(other.runs(shape) for other in others.values()) for shape in wanted
        )

    def has_enough(self) -> bool:
        """Returns True if at most half of the working workers are on probation with one more."""
        working = [one.status for one in self.fleet.values() if one.status in CLAIMING]
        return 2 * (working.count(PROBATION) + 1) <= len(working)


def _returning(
    work: Work, workers: Mapping[int, Worker], noted: Mapping[int, Conduct], peers: _Peers
) -> Iterable[Worker]:
    """Yields workers on probation with too little evidence left, or which are needed."""
    config = work.config
    window = config.bad_worker_window_ms
    for worker in workers.values():
        if worker.status != PROBATION:
            continue
        conduct = noted[worker.id]
        last = max((trouble.at for trouble in conduct.troubles), default=0)
        if not config.bad_worker_jobs:
            yield bring_back(work, worker, "bad_worker_jobs is 0")
        elif len(unshared(conduct, _failed_elsewhere(worker.id, noted))) < config.bad_worker_jobs:
            yield bring_back(work, worker, "jobs that failed on it failed on other workers too")
        elif work.now - last >= window:
            since = readable_duration(window)
            yield bring_back(work, worker, f"nothing has failed on it for {since}")
        elif not peers.can_replace(worker):
            yield bring_back(work, worker, "no other worker can run some of the ready jobs")


def _failed_elsewhere(worker: int, noted: Mapping[int, Conduct]) -> set[int]:
    return {t.job for other, one in noted.items() if other != worker for t in one.troubles}


async def _suspected(
    work: Work, workers: Mapping[int, Worker], noted: Mapping[int, Conduct], peers: _Peers
) -> list[Worker]:
    """Returns the workers to put on probation, the worst first, as far as the fleet can spare
    them.
    """
    least = work.config.bad_worker_jobs
    judged = [w for w in workers.values() if w.status == ONLINE and _is_candidate(w, least)]
    if not judged:
        return []
    working = sorted(one.id for one in peers.fleet.values() if one.status in CLAIMING)
    trials = await _trials(work, working, noted)
    running = await _running(work, working)
    found: list[tuple[Blame, Worker]] = []
    for worker in judged:
        longest = max(trouble.ran_ms for trouble in noted[worker.id].troubles)
        survived = [one for one in running if work.now - one.started_at > longest]
        verdict = blame(*_compare(trials, survived, worker.id), len(working), least)
        if verdict is not None:
            found.append((verdict, worker))
    suspected: list[Worker] = []
    for verdict, worker in sorted(found, key=lambda pair: (-pair[0].failed, pair[1].id)):
        if peers.has_enough() and peers.can_replace(worker):
            suspect = peers.fleet[worker.id] = _suspect(work, worker, noted[worker.id], verdict)
            suspected.append(suspect)
    return suspected


async def _running(work: Work, working: Sequence[int]) -> list[_Running]:
    """Returns what runs on some of these workers."""
    leases = await work.tx.leases.of_workers(working[:MAX_PEERS])
    facts = await work.tx.jobs.read(sorted(lease.job for lease in leases))
    return [
        _Running(lease.worker, facts[lease.job].shape, lease.started_at)
        for lease in leases
        if lease.started_at is not None and lease.job in facts
    ]


def _suspect(work: Work, worker: Worker, conduct: Conduct, found: Blame) -> Worker:
    reason = (
        f"{found.failed} of {counted(found.ended, 'job')} failed on it for infrastructure reasons, "
        f"{found.usual:.1%} of the same kinds on other workers"
    )
    message = f"Worker {worker.name} is on probation: {reason}; it gets one job at a time"
    work.say_of(worker, message, status="probation")
    troubles = write_conduct(replace(conduct, probation=Probation()))
    return worker._replace(status=PROBATION, reason=reason, troubles=troubles)


async def _trials(
    work: Work, working: Sequence[int], noted: Mapping[int, Conduct]
) -> dict[int, dict[int, Trials]]:
    """Returns the recently ended attempts of each worker, by kind."""
    window = work.now - work.config.bad_worker_window_ms
    after = max(0, await work.tx.log.newest() - MAX_EVENTS)
    completed = await work.tx.series.completed_on(after, window)
    start = max(window, completed.since)
    known = set(working)
    tallies: dict[int, dict[int, list[int]]] = {}
    begin: dict[int, int] = {}
    for worker in sorted(known & noted.keys()):
        elsewhere = _failed_elsewhere(worker, noted)
        conduct = noted[worker]
        full = len(conduct.troubles) == MAX_TROUBLES
        begin[worker] = max(start, conduct.troubles[0].at if full else start)
        for trouble in unshared(conduct, elsewhere):
            if trouble.at >= start:
                tally = tallies.setdefault(worker, {}).setdefault(trouble.shape, [0, 0])
                tally[0] += 1
                tally[1] += 1
    for row in completed.rows:
        # All attempts of a minute count if some ended after the oldest failure that is kept.
        if row.worker in known and row.last_at >= begin.get(row.worker, start):
            tallies.setdefault(row.worker, {}).setdefault(row.shape, [0, 0])[0] += row.jobs
    return {
        worker: {kind: Trials(*tally) for kind, tally in kinds.items()}
        for worker, kinds in tallies.items()
    }


def _compare(
    trials: Mapping[int, Mapping[int, Trials]], survived: Iterable[_Running], worker: int
) -> tuple[dict[int, Trials], dict[int, Trials]]:
    """Returns what ended on this worker and on all others, by kind.

    Jobs that `survived` have run for longer than any that failed here: they count as completed.
    """
    own, others = dict(trials.get(worker, {})), dict[int, Trials]()
    for other, kinds in trials.items():
        if other != worker:
            for kind, (ended, failed) in kinds.items():
                known = others.get(kind, Trials())
                others[kind] = Trials(known.ended + ended, known.failed + failed)
    for one in survived:
        side = own if one.worker == worker else others
        known = side.get(one.shape, Trials())
        side[one.shape] = known._replace(ended=known.ended + 1)
    return own, others
