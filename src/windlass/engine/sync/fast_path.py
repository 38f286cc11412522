"""The fast path: common submits and syncs in one round trip, where the store offers that.

This file only builds the request and reads the answer: the jobs that a worker may get are planned
from the same bounds, and a commit results in the same `Effects`. Uncommon cases return None, and
the normal path runs instead.
"""

import hashlib
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from windlass.domain.config import Config
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import Worker
from windlass.domain.values.ids import PER_EPOCH
from windlass.engine.attempts.reports import Done, split_reports
from windlass.engine.claim.search import first_width, most_of_each
from windlass.engine.submit.submission import Submission, Submitted, rows_of, submission_key
from windlass.engine.submit.write_jobs import plain_rows
from windlass.engine.sync.fast_path_gates import PLAIN, FastGates, Opening
from windlass.engine.sync.sync import SyncCall, add_isolation, cut_timeouts
from windlass.engine.transaction.bounds import Bounds
from windlass.engine.transaction.catalog import Catalog, Profile
from windlass.engine.transaction.effects import Effects, Raise, WorkerLoad
from windlass.engine.transaction.unit_of_work import depth_of
from windlass.messages.sync import Finished, SyncReply, SyncRequest
from windlass.store.fast_path import (
    Arrival,
    FastCommands,
    FastPathProbe,
    FastPathRules,
    Limited,
    PlainClaim,
    PlainKey,
    PlainSubmit,
    PlainSubmitted,
    PlainSync,
    PlainSynced,
)

Q = TypeVar("Q")
A = TypeVar("A")

MAX_SKIPPED = 64
MAX_FAST = 20_000  # jobs of usual size in one call


class FastResult(NamedTuple, Generic[A]):
    """Answers, the effects of their commit, and when workers were last heard."""

    answers: Sequence[A]
    effects: Effects
    heard: Mapping[int, int] = {}


async def answers_of(
    run: Callable[[Sequence[Q]], Awaitable[FastResult[A] | None]],
    finish: Callable[[FastResult[A]], None],
    requests: Sequence[Q],
) -> Sequence[A] | None:
    """Returns the answers of a fast command, or None if the normal path has to run."""
    done = await run(requests)
    if done is None:
        return None
    finish(done)
    return done.answers


class _Backoff:
    """Skips calls after a failed try: twice as many after each further one."""

    def __init__(self) -> None:
        self._next = 1
        self._left = 0

    def tries(self) -> bool:
        self._left -= 1
        return self._left < 0

    def learn(self, worked: bool) -> None:
        self._left = 0 if worked else self._next
        self._next = 1 if worked else min(2 * self._next, MAX_SKIPPED)


class _Plan(NamedTuple):
    """Where a claim looks, the bounds at that time, and which shapes have gates."""

    claim: PlainClaim
    generations: Mapping[int, int]
    limited: list[Limited] | None = None
    refused: Sequence[tuple[int, int]] = ()


class _Held(NamedTuple):
    """How many leases a worker has at most, as of its newest lease.

    Others only end leases of a worker, or give it newer ones, which its next sync comes to know.
    """

    incarnation: int
    last_lease: int
    leases: int


class FastPath:
    """The fast commands of one engine."""

    def __init__(
        self, commands: FastCommands, config: Config, catalog: Catalog, bounds: Bounds
    ) -> None:
        self._commands = commands
        self._config = config
        self._catalog = catalog
        self._bounds = bounds
        self._backoff = _Backoff()
        self._apart = _Backoff()
        self._described: dict[tuple[str, str], bytes] = {}
        self._skipped: set[int] = set()
        self._held: dict[int, _Held] = {}
        self._gates = FastGates(catalog)

    async def submit(self, submissions: Sequence[Submission]) -> FastResult[Submitted] | None:
        """Submits plain jobs of known shapes."""
        if sum(rows_of(submission.jobs) for submission in submissions) > MAX_FAST:
            return None  # Its arguments would be made in one step; the normal path writes pages.
        jobs = [job for submission in submissions for job in submission.jobs]
        shapes: dict[str, int] = {}
        for job in jobs:
            shape = self._catalog.ids.get(job.template.digest)
            if shape is None or shape not in self._catalog.shapes:
                return None
            shapes[job.template.digest] = shape
        rows, groups = plain_rows(self._catalog, shapes, jobs, range(len(jobs)), 0)
        depths: dict[str, int] = {}
        for group in groups:
            name = depth_of(self._catalog.queue_of(group.shape))
            depths[name] = depths.get(name, 0) + group.count
        arrivals = [Arrival(g.shape, g.rank, g.first, g.count) for g in groups]
        done = await self._commands.submit(PlainSubmit(rows, depths, _keys(submissions), arrivals))
        if done is None:
            return None
        effects = Effects()
        effects.announced = done.told
        for shape, rank, first, count in arrivals:
            effects.arrive_at(shape, rank + done.now, done.ids[first], count)
        return FastResult(_submitted(submissions, done), effects)

    def apart(self) -> bool:
        """Returns whether a few syncs that meet should come one by one: then they are fast."""
        return self._apart.tries()

    def skip_once(self, workers: Iterable[int]) -> None:
        """Takes the normal path for the next sync of these workers: they may have messages."""
        self._skipped.update(workers)

    async def sync(self, calls: Sequence[SyncCall]) -> FastResult[SyncReply] | None:
        """Answers one worker's sync that reports nothing but plain completions."""
        if len(calls) != 1:
            return None  # a batch shares its round trips
        answered = await self._sync(calls[0])
        self._apart.learn(answered is not None)
        return answered

    async def _sync(self, call: SyncCall) -> FastResult[SyncReply] | None:
        if not self._is_current(call.request):
            return None
        if call.worker in self._skipped:
            self._skipped.discard(call.worker)
            return None
        known = self._catalog.last_seen_as(call.worker)
        if known is None or not _is_plain(known[0], call.request):
            return None
        done: Done = {}
        if split_reports(known[0], call.request, self._config.result_limit, done):
            return None
        plan = self._plan(*known, call.request, done)
        if plan is None or not self._backoff.tries():
            return None
        asked = self._asked(known[0], call, [item for _, item in done.values()], plan)
        answer = await self._commands.sync(asked, self._rules())
        self._backoff.learn(answer is not None)
        if answer is None:
            return None
        effects = self._effects(asked, answer, plan.generations)
        effects.refused += plan.refused if len(answer.granted) < answer.asked else ()
        self._note(asked, answer, effects)
        specs = [bytes(assignment.spec) for assignment in answer.granted]
        cut = cut_timeouts(answer.granted, specs, answer.now)
        jobs = tuple(add_isolation(self._catalog, cut))
        reply = SyncReply(jobs=jobs, epoch=self._catalog.epoch)
        return FastResult([reply], effects, {} if asked.again else {asked.worker: answer.now})

    def _is_current(self, request: SyncRequest) -> bool:
        """Returns whether the worker has no claims from before a backup was restored."""
        catalog = self._catalog
        before = catalog.epoch * PER_EPOCH
        current = request.epoch <= catalog.epoch and request.incarnation > before
        return current and not catalog.hold_until

    def learn(self, loads: Mapping[int, WorkerLoad], leaving: Iterable[int]) -> None:
        """Remembers what workers hold, and forgets those whose jobs ended in another way."""
        leaving = list(leaving)
        for worker in leaving:
            self._held.pop(worker, None)
        self._gates.learn(loads, leaving)

    def forget(self) -> None:
        """Forgets what workers hold: it may be wrong."""
        self._gates.forget()

    def _note(self, asked: PlainSync, answer: PlainSynced, effects: Effects) -> None:
        """Remembers what the worker holds now, and notes freed slots of queues."""
        newest = answer.granted[-1].lease if answer.granted else asked.received
        if answer.held is None:
            self._held.pop(asked.worker, None)
        else:
            self._held[asked.worker] = _Held(asked.incarnation, newest, answer.held)
        shapes = answer.shapes or [PLAIN] * len(answer.granted)
        done = [item.job for item in asked.done]
        self._gates.note(asked.worker, asked.received, done, answer.granted, shapes)
        queues = {row.limit: name for name, row in self._catalog.queues.items() if row.limit}
        for limit in answer.freed:
            effects.free(queues[limit], 1)

    def _plan(
        self, worker: Worker, profile: Profile, request: SyncRequest, done: Collection[int]
    ) -> _Plan | None:
        """Plans where to look for jobs, from the bounds with which the normal search begins."""
        want, bounds, catalog, config = request.want, self._bounds, self._catalog, self._config
        limited: list[Limited] | None = [] if catalog.any_limited and done else None
        if want <= 0:
            return _Plan(PlainClaim(0), {}, limited)
        if bounds.refreshed_at is None or config.fair_share:
            return None
        paused = catalog.paused if catalog.any_paused else None
        candidates, following = bounds.best(profile, first_width(want), paused)
        if any(shape not in catalog.shapes for _, _, shape in candidates):
            return None
        gated = [shape for _, _, shape in candidates if catalog.gated(shape, profile)]
        room_for: Mapping[int, int] = {}
        if gated:
            opening = self._open(worker, request, done, gated)
            if opening is None:
                return None
            room_for, limited = opening
        most = most_of_each(len(candidates), want)
        probes = [
            FastPathProbe(
                shape, rank, job, min(most, room_for.get(shape, most)),
                depth_of(catalog.queue_of(shape)),
            )
            for rank, job, shape in candidates
            if room_for.get(shape, 1)
        ]  # fmt: skip
        if request.prefetch:
            state, slack = State.ASSIGNED.code, config.timeouts.assigned_ms
        else:
            state = State.RUNNING.code
            slack = config.term_grace_ms + config.heartbeat_interval_ms
        epoch = catalog.epoch * PER_EPOCH
        claim = PlainClaim(
            want, probes, following, bounds.refreshed_at, state, slack, epoch + 1 if epoch else 0
        )
        closed = [(worker.id, shape) for shape, jobs in room_for.items() if not jobs]
        generations = bounds.generations(probe.shape for probe in probes)
        return _Plan(claim, generations, limited, closed)

    def _open(
        self, worker: Worker, request: SyncRequest, done: Collection[int], gated: Sequence[int]
    ) -> Opening | None:
        """Returns how many jobs of gated shapes a worker may get, if that is known."""
        room = self._gates.room(worker, request.received, done)
        if room is None:
            return None
        return self._gates.open(room, self._catalog.profile(worker), gated, request.want)

    def _asked(
        self, worker: Worker, call: SyncCall, done: list[Finished], plan: _Plan
    ) -> PlainSync:
        request = call.request
        return PlainSync(
            worker.id, worker.incarnation, request.seq, call.again, request.received,
            self._describe(worker), done, plan.claim, self._holds(call), plan.limited,
        )  # fmt: skip

    def _holds(self, call: SyncCall) -> int | None:
        """Returns how many leases the worker has at most, if that is known."""
        known = self._held.get(call.worker)
        request = call.request
        if known is None or known[:2] != (request.incarnation, request.received):
            return None
        return known.leases

    def _rules(self) -> FastPathRules:
        patience, config = self._bounds.patience_ms, self._config
        ttl = max(config.bound_ttl_ms, patience)
        return FastPathRules(config.heartbeat_interval_ms // 3, ttl, patience)

    def _describe(self, worker: Worker) -> bytes:
        metadata = worker.static, worker.dynamic
        known = self._described.get(metadata)
        if known is None:
            if len(self._described) >= 10_000:
                self._described.clear()
            known = self._described[metadata] = hashlib.sha256(
                "\n".join(metadata).encode()
            ).digest()
        return known

    def _effects(
        self, asked: PlainSync, answer: PlainSynced, generations: Mapping[int, int]
    ) -> Effects:
        """Returns the effects that the normal search and the reports would have."""
        effects = Effects()
        effects.ended += sorted([item.job for item in asked.done])
        if not answer.asked:
            return effects
        effects.count("assignment_attempts", answer.asked)
        if answer.granted:
            effects.count("assignment_successes", len(answer.granted))
        left: dict[int, tuple[int, int]] = {}
        for shape, rank, job in answer.left:  # best first
            left.setdefault(shape, (rank, job))
            if len(answer.granted) >= answer.asked:
                effects.arrive_at(shape, rank, job, 1)
        cursors = answer.cursors or [None] * len(asked.claim.probes)
        for probe, cursor in zip(asked.claim.probes, cursors, strict=True):
            place = left.get(probe.shape, cursor)
            effects.raises.append(Raise(probe.shape, place, generations[probe.shape]))
        if answer.looked is not None:
            self._bounds.cover(answer.now, answer.looked)
        return effects


def _is_plain(worker: Worker, request: SyncRequest) -> bool:
    return not (
        request.started
        or request.released
        or request.held is not None
        or request.metadata is not None
        or request.stopping
        or worker.incarnation != request.incarnation
    )


def _keys(submissions: Sequence[Submission]) -> list[PlainKey]:
    keys: list[PlainKey] = []
    first = 0
    for submission in submissions:
        if submission.key is not None:
            keys.append(PlainKey(*submission_key(submission), first, len(submission.jobs)))
        first += len(submission.jobs)
    return keys


def _submitted(submissions: Sequence[Submission], done: PlainSubmitted) -> list[Submitted]:
    answers: list[Submitted] = []
    first = 0
    for submission in submissions:
        mine = tuple(done.ids[first : first + len(submission.jobs)])
        answers.append(Submitted(mine, (True,) * len(mine), at=done.now))
        first += len(submission.jobs)
    return answers
