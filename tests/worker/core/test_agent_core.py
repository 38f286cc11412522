"""Incarnations of an agent in virtual time: deadlines, rivals, old servers, drains."""

import asyncio
import gc
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.support.running import run
from tests.support.virtual import run_virtual
from tests.worker.core.scripted import (
    GRACE_MS,
    HEARTBEAT_MS,
    LEASE_MS,
    ScriptedGateway,
    ScriptedMachine,
    assignment,
    make_core,
)
from windlass.client.transport import ServerError
from windlass.domain.config import LEASE_MARGIN_MS
from windlass.domain.values.errors import Conflict, StoreUnavailable, Unreachable
from windlass.messages.sync import Finished, SyncReply, SyncRequest
from windlass.ports.loop_time import pass_time
from windlass.worker.core.agent_core import RIVALRY

SOFT_S = (LEASE_MS - HEARTBEAT_MS // 3 - LEASE_MARGIN_MS - GRACE_MS) / 1000


def unreachable(request: SyncRequest) -> SyncReply:
    raise Unreachable("cut off")


def full(request: SyncRequest) -> SyncReply:
    raise StoreUnavailable("the disk of w.db is full; free some space", outcome_unknown=False)


def test_the_deadline_is_put_off_by_answers_and_by_nothing_else() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        running = asyncio.ensure_future(make_core(gateway, machine).run())
        await pass_time(60)
        (soft, hard), last = machine.deadlines[0], machine.deadlines[-1]
        assert soft == pytest.approx(SOFT_S)
        assert hard == pytest.approx(SOFT_S + GRACE_MS / 1000)
        assert 60 < last[0] <= 60 + SOFT_S
        gateway.answer = unreachable
        told = len(machine.deadlines)
        await pass_time(300)
        assert len(machine.deadlines) <= told + 1  # the sync that was under way
        running.cancel()

    run_virtual(main())


def test_what_runs_inside_the_agent_is_stopped_before_the_lease_is_over() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        gateway.answer = lambda request: SyncReply(jobs=(assignment(1),))
        running = asyncio.ensure_future(make_core(gateway, machine).run())
        await pass_time(1)
        gateway.answer = unreachable
        (attempt,) = machine.starter.attempts
        await pass_time(SOFT_S - 2)
        assert attempt.stops == []
        await pass_time(2)
        assert attempt.stops == [("released", "no server answered")]
        running.cancel()

    run_virtual(main())


def test_a_server_that_answers_with_an_error_is_not_called_silent() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        gateway.answer = lambda request: SyncReply(jobs=(assignment(1),))
        running = asyncio.ensure_future(make_core(gateway, machine).run())
        await pass_time(1)
        gateway.answer = full
        (attempt,) = machine.starter.attempts
        await pass_time(SOFT_S)
        reason = "the server could not answer: the disk of w.db is full; free some space"
        assert attempt.stops == [("released", reason)]
        running.cancel()

    run_virtual(main())


def test_an_older_epoch_gets_no_work_done() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        gateway.epoch = 7
        gateway.answer = lambda request: SyncReply(jobs=(assignment(1),), epoch=6)
        running = asyncio.ensure_future(make_core(gateway, machine).run())
        await pass_time(600)
        assert len(gateway.syncs) > 10
        assert machine.starter.attempts == []
        gateway.answer = lambda request: SyncReply(jobs=(assignment(1),), epoch=7)
        await pass_time(60)
        assert len(machine.starter.attempts) == 1
        running.cancel()

    run_virtual(main())


def disk_full(request: SyncRequest) -> SyncReply:
    raise ServerError(507, "disk_full", "the store's disk is full")


def test_a_server_that_refuses_is_not_called_silent() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        gateway.answer = lambda request: SyncReply(jobs=(assignment(1),))
        running = asyncio.ensure_future(make_core(gateway, machine).run())
        await pass_time(1)
        gateway.answer = disk_full
        await pass_time(SOFT_S + 1)
        (attempt,) = machine.starter.attempts
        assert attempt.stops == [
            ("released", "the server could not answer: the store's disk is full")
        ]
        running.cancel()

    run_virtual(main())


def test_a_server_with_a_fault_is_asked_again_until_it_lets_the_worker_in() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        gateway.refusal = ServerError(507, "disk_full", "the store's disk is full")
        core = make_core(gateway, machine)
        running = asyncio.ensure_future(core.run())
        await pass_time(20)
        assert not running.done()
        gateway.refusal = None
        await pass_time(10)
        assert core.enrolled.is_set()
        running.cancel()

    run_virtual(main())


def ended(request: SyncRequest) -> SyncReply:
    raise Conflict("incarnation_ended", "another process has enrolled")


def test_an_ended_incarnation_kills_its_jobs_and_enrols_again() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        gateway.answer = lambda request: SyncReply(jobs=(assignment(1),))
        core = make_core(gateway, machine)
        running = asyncio.ensure_future(core.run())
        await pass_time(1)
        (attempt,) = machine.starter.attempts
        gateway.answer = ended
        await core.enrolled.wait()
        while machine.ended == 0:
            await pass_time(0.1)
        assert attempt.stops == [("lost", None)]
        assert len(gateway.enrolments) > 1
        running.cancel()

    run_virtual(main())


def test_an_agent_that_is_evicted_again_and_again_waits_longer_each_time() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        gateway.answer = ended
        core = make_core(gateway, machine)
        running = asyncio.ensure_future(core.run())
        await pass_time(600)
        pauses = [b - a for a, b in zip(gateway.enrolments, gateway.enrolments[1:], strict=False)]
        assert max(pauses[: RIVALRY - 1]) < 1
        assert pauses[RIVALRY - 1 : RIVALRY + 2] == pytest.approx([6, 12, 24], rel=0.1)
        assert len(gateway.enrolments) < 25
        core.stop()  # also in the midst of its pause
        await running

    run_virtual(main())


def test_an_agent_that_was_paused_past_its_lease_has_no_rival() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        core = make_core(gateway, machine)
        running = asyncio.ensure_future(core.run())
        for time in range(1, 2 * RIVALRY):
            await pass_time(1)
            gateway.answer = unreachable  # As it is for a process that does not run.
            await pass_time(LEASE_MS / 1000)
            gateway.answer = lambda request, time=time: (
                ended(request) if request.incarnation <= time else SyncReply()
            )
            await pass_time(6)
            assert len(gateway.enrolments) == time + 1
        assert core.evictions == 0
        running.cancel()

    run_virtual(main())


def test_a_worker_says_that_it_waits_for_approval_and_that_it_was_approved() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        gateway.status = "pending_approval"
        gateway.answer = lambda request: SyncReply(pending=True)
        with capture_logs() as said:
            running = asyncio.ensure_future(make_core(gateway, machine).run())
            await pass_time(10)
            assert [line["event"] for line in said] == ["enrolled", "pending_approval"]
            assert "windlass workers approve 1" in said[-1]["message"]
            gateway.answer = None
            await pass_time(10)
            assert [line["event"] for line in said[2:]] == ["approved"]
        running.cancel()

    run_virtual(main())


def test_a_worker_without_a_server_stops_within_seconds_and_notes_what_it_could_not_say() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        given = (assignment(1), assignment(2))
        gateway.answer = lambda request: SyncReply(jobs=given if request.want else ())
        core = make_core(gateway, machine, slots=2)
        running = asyncio.ensure_future(core.run())
        await pass_time(1)
        gateway.answer = unreachable
        core.drain()
        await pass_time(0.5)
        assert machine.stops == [()]  # noted at once, for it may be killed any time
        one, two = machine.starter.attempts
        one.complete()
        began = asyncio.get_running_loop().time()
        await running
        assert asyncio.get_running_loop().time() - began < 8
        assert two.stops == [("released", "the worker was stopped"), ("lost", None)]
        assert machine.stops[-1] == (Finished(1, 1),)
        assert gateway.left == []

    run_virtual(main())


def test_a_server_that_hangs_holds_up_a_stop_no_longer() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        gateway.answer = lambda request: SyncReply(jobs=(assignment(1),) if request.want else ())
        core = make_core(gateway, machine)
        running = asyncio.ensure_future(core.run())
        await pass_time(1)
        gateway.hangs = True
        core.drain()
        began = asyncio.get_running_loop().time()
        await running
        assert asyncio.get_running_loop().time() - began < 9

    run_virtual(main())


@pytest.mark.parametrize(("own_ms", "limit_s"), [(None, 20), (5_000, 5), (0, 0)])
def test_the_drain_limit_of_the_server_counts_unless_the_worker_has_its_own(
    own_ms: int | None, limit_s: int
) -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        gateway.answer = lambda request: SyncReply(jobs=(assignment(1),) if request.want else ())
        core = make_core(gateway, machine, drain_limit_ms=own_ms)
        running = asyncio.ensure_future(core.run())
        await pass_time(1)
        core.drain()
        (attempt,) = machine.starter.attempts
        await pass_time(max(0, limit_s - 1))
        assert not attempt.stops
        await pass_time(2)
        assert attempt.stops == [("released", "the worker was stopped")]
        attempt.end(None)
        await running

    run_virtual(main())


def test_a_drain_lets_jobs_end_and_takes_no_more() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        gateway.answer = lambda request: SyncReply(jobs=(assignment(1),) if request.want else ())
        core = make_core(gateway, machine, slots=1)
        running = asyncio.ensure_future(core.run())
        await pass_time(1)
        (attempt,) = machine.starter.attempts
        core.drain()
        await pass_time(10)
        assert (attempt.stops, gateway.syncs[-1].want) == ([], 0)
        attempt.complete()
        await running
        assert (len(machine.starter.attempts), gateway.left) == (1, [1])

    run_virtual(main())


def test_a_drain_past_its_limit_stops_the_jobs() -> None:
    async def main() -> None:
        gateway, machine = ScriptedGateway(), ScriptedMachine()
        gateway.answer = lambda request: SyncReply(jobs=(assignment(1),) if request.want else ())
        core = make_core(gateway, machine, drain_limit_ms=30_000)
        running = asyncio.ensure_future(core.run())
        await pass_time(1)
        core.drain()
        await pass_time(29)
        (attempt,) = machine.starter.attempts
        assert attempt.stops == []
        await pass_time(2)
        assert attempt.stops == [("released", "the worker was stopped")]
        attempt.end(None)
        await running

    run_virtual(main())


def test_a_sync_that_fails_when_nobody_waits_for_it_is_not_reported_as_forgotten() -> None:
    """In a real loop: the one of virtual time looks at every error."""
    reported: list[dict[str, Any]] = []
    waiting, broken = asyncio.Event(), asyncio.Event()

    class Broken(ScriptedGateway):
        async def sync(self, worker: int, request: SyncRequest) -> SyncReply:
            if not request.wait_ms:
                return SyncReply()
            waiting.set()
            await broken.wait()
            raise Unreachable("the connection is broken")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, context: reported.append(context))
        running = asyncio.ensure_future(make_core(Broken(), ScriptedMachine()).run())
        await waiting.wait()
        running.cancel()
        await asyncio.wait({running})
        broken.set()
        await pass_time(0)
        await pass_time(0)
        gc.collect()

    run(main())
    assert reported == []
