"""Drains: SIGTERM lets jobs end, a second SIGINT stops them and hands them back."""

import asyncio
import signal
from pathlib import Path

import pytest

from tests.worker.rig import Rig, Witness, play, state_of
from windlass.domain.matching.workers import WorkerStatus


def test_sigterm_waits_for_what_runs_and_takes_nothing_new(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        gate = tmp_path / "gate"
        async with rig.agent_process(slots=2) as agent:
            job = await rig.submit("sh", "-c", f"mkfifo {gate}; echo ready; read x < {gate}")
            await rig.files.log_line(job)
            agent.signal(signal.SIGTERM)
            await rig.bridge.wants_nothing()
            while (await rig.store.snapshot()).workers[0].status != WorkerStatus.DRAINING:
                await rig.bridge.wants_nothing()  # until the first of them was answered
            waiting = await rig.submit("true")
            await _open(gate)
            assert await agent.process.wait() == 0
            assert state_of(await rig.ended(job)) == "completed"
            assert (await rig.record(waiting)).facts.is_open
            (worker,) = (await rig.store.snapshot()).workers
            assert (worker.status, worker.reason) == (WorkerStatus.OFFLINE, "stopped")

    play(tmp_path, scene)


def test_a_second_sigint_stops_the_jobs_and_hands_them_back_uncounted(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent_process(slots=2) as agent:
            job = await rig.submit("sh", "-c", "echo $$; exec sleep 1000")
            (pid,) = await rig.files.log_line(job)
            witness = Witness(int(pid))
            agent.signal(signal.SIGINT)
            await rig.bridge.wants_nothing()
            assert witness.alive
            agent.signal(signal.SIGINT)
            assert await agent.process.wait() == 0
            await witness.gone()
            record = await rig.record(job)
            assert record.facts.is_open
            assert (record.facts.failed, record.facts.lost) == (0, 0)
            (attempt,) = await rig.attempts(job)
            assert attempt.message == "the worker was stopped"

    play(tmp_path, scene)


def test_a_drain_past_its_limit_hands_jobs_back(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(drain_limit_ms=100) as agent:
            job = await rig.submit("sh", "-c", "echo $$; exec sleep 1000")
            (pid,) = await rig.files.log_line(job)
            witness = Witness(int(pid))
            agent.drain()
            await witness.gone()
        (attempt,) = await rig.attempts(job)
        assert attempt.message == "the worker was stopped"

    play(tmp_path, scene)


def test_a_server_that_drains_a_worker_gives_it_nothing_more(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent() as agent:
            assert state_of(await rig.ended(await rig.submit("true"))) == "completed"
            await rig.engine.workers.set_status(agent.worker, WorkerStatus.DRAINING)
            job = await rig.submit("true")
            await rig.engine.workers.set_status(agent.worker, WorkerStatus.ONLINE)
            assert state_of(await rig.ended(job)) == "completed"

    play(tmp_path, scene)


FIRST_HANGS = 'echo $$; [ "$WINDLASS_ATTEMPT" != 1 ] || exec sleep 1000'


@pytest.mark.parametrize("killed", [False, True])
def test_a_stop_without_a_server_or_cut_short_by_a_kill_counts_against_no_job(
    tmp_path: Path, killed: bool
) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent_process(slots=2) as agent:
            job = await rig.submit("sh", "-c", FIRST_HANGS)
            await rig.files.log_line(job)
            rig.bridge.cut = not killed  # the server is stopped as well
            agent.signal(signal.SIGTERM)
            if killed:
                await rig.bridge.wants_nothing()
                agent.signal(signal.SIGKILL)
                await agent.process.wait()
            else:
                async with asyncio.timeout(8):
                    assert await agent.process.wait() == 0
        rig.bridge.cut = False
        async with rig.agent_process():
            record = await rig.ended(job)
        assert (state_of(record), record.facts.attempt) == ("completed", 2)
        assert (record.facts.failed, record.facts.lost) == (0, 0)
        (attempt,) = await rig.attempts(job)
        assert attempt.message == "the worker was stopped"

    play(tmp_path, scene)
    assert not (tmp_path / "w" / "stopped").exists()


def test_what_ended_while_the_server_was_stopped_is_reported_by_the_next_process(
    tmp_path: Path,
) -> None:
    async def scene(rig: Rig) -> None:
        gate = tmp_path / "gate"
        async with rig.agent_process() as agent:
            job = await rig.submit("sh", "-c", f"mkfifo {gate}; echo ready; read x < {gate}")
            await rig.files.log_line(job)
            rig.bridge.cut = True
            agent.signal(signal.SIGTERM)
            await _open(gate)
            assert await agent.process.wait() == 0
        rig.bridge.cut = False
        async with rig.agent_process():
            record = await rig.ended(job)
        assert (state_of(record), record.facts.attempt) == ("completed", 1)

    play(tmp_path, scene)


async def _open(gate: Path) -> None:
    process = await asyncio.create_subprocess_exec("sh", "-c", f"echo go > {gate}")
    await process.wait()
