"""The checks of the actor tests catch what they should: each is run with a planted bug."""

from collections.abc import Callable
from typing import Any

import pytest

from tests.fuzzing.support import actor_checks
from tests.fuzzing.support.actor_runs import ActorRun
from windlass_fuzz.buckets.dry_run import DryRunBucket
from windlass_fuzz.roles import build_steps, manager
from windlass_fuzz.state import leases, rules
from windlass_fuzz.state.documents import BuildQueue, State, Version

SEEDS = range(1, 6)
Plant = Callable[[pytest.MonkeyPatch], None]


def no_conditions(patch: pytest.MonkeyPatch) -> None:
    """Plants a server that ignores conditions."""
    refusing = DryRunBucket.put_if

    async def put_if(
        self: DryRunBucket, key: str, body: bytes, *, expected: Any, **rest: Any
    ) -> Any:
        there = await self.get(key)
        return await refusing(self, key, body, expected=there and there.etag, **rest)

    patch.setattr(DryRunBucket, "put_if", put_if)


def no_nonces(patch: pytest.MonkeyPatch) -> None:
    """Plants writes that are repeated although they were applied and only the answer was lost."""
    patch.setattr(Version, "includes", lambda *_: False)


def no_leases(patch: pytest.MonkeyPatch) -> None:
    """Plants leases that do not exclude anyone."""
    patch.setattr(leases, "is_live", lambda *_: False)


def no_second_look(patch: pytest.MonkeyPatch) -> None:
    """Plants a queue that accepts a commit a second time."""

    def enqueue(state: BuildQueue, commits: Any) -> BuildQueue:
        known = {*state.queue, *state.built, *state.failed}
        fresh = tuple(commit for commit in commits if commit not in known)
        return state._replace(queue=state.queue + fresh)

    patch.setattr(rules, "enqueue_new", enqueue)


def checked_too_early(patch: pytest.MonkeyPatch) -> None:
    """Plants a manager that records its progress before it queues anything."""
    queueing = manager.Manager._queue

    async def queue(self: manager.Manager, commits: Any) -> Any:
        found = list(commits)
        if found:
            last = found[-1].hash
            await self._pipeline.state.update(lambda state: State(last, state.checked_at_ms))
        return await queueing(self, found)

    patch.setattr(manager.Manager, "_queue", queue)


def left_the_queue_when_taken(patch: pytest.MonkeyPatch) -> None:
    """Plants a builder that removes a commit from the queue when its build starts."""
    taking = build_steps.BuildSteps.take

    async def take(self: build_steps.BuildSteps, *words: Any) -> Any:
        took = await taking(self, *words)
        if took.held is not None:
            gone = took.held.commit
            await self._pipeline.queue.update(
                lambda q: q._replace(queue=rules.without(q.queue, gone))
            )
        return took

    patch.setattr(build_steps.BuildSteps, "take", take)


def caught(check: Callable[[ActorRun], None]) -> bool:
    """Returns whether one of a few runs fails the check."""
    for seed in SEEDS:
        try:
            check(ActorRun(seed))
        except AssertionError:
            return True
    return False


def one_chain(ended: ActorRun) -> None:
    actor_checks.check_one_chain(ended.journal)


def builds_apart(ended: ActorRun) -> None:
    actor_checks.check_apart(ended.journal.builds)


def fuzzings_apart(ended: ActorRun) -> None:
    actor_checks.check_apart(ended.journal.fuzzings)


def completed_once(ended: ActorRun) -> None:
    actor_checks.check_completed_once(ended.journal)


def counted_once(ended: ActorRun) -> None:
    actor_checks.check_counted_once(ended.journal)


def none_lost(ended: ActorRun) -> None:
    actor_checks.check_none_lost(ended.journal, ended.code, ended.pending)


@pytest.mark.parametrize(
    ("plant", "check"),
    [
        (no_conditions, one_chain),
        (no_nonces, counted_once),
        (no_leases, builds_apart),
        (no_leases, fuzzings_apart),
        (no_second_look, completed_once),
        (checked_too_early, none_lost),
        (left_the_queue_when_taken, none_lost),
    ],
)
def test_a_planted_bug_is_caught(
    monkeypatch: pytest.MonkeyPatch, plant: Plant, check: Callable[[ActorRun], None]
) -> None:
    plant(monkeypatch)
    assert caught(check)
