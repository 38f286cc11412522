"""No job outlives a killed, stopped or cut-off agent (mechanics 7)."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.support.running import run
from tests.worker.rig import MAX_TEST_S, SHORT, Rig, Witness, play, state_of
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE
from windlass.worker.keeper.client import KeeperClient
from windlass.worker.keeper.kept_process import Program, SpawnFailed
from windlass.worker.keeper.processes import boottime

FIRST_HANGS = (
    'echo $$; [ "$WINDLASS_ATTEMPT" != 1 ] || { trap "" TERM; while :; do sleep 1000; done; }'
)


async def started(rig: Rig, job: int) -> Witness:
    (pid, *_) = await rig.files.log_line(job)
    return Witness(int(pid))


def test_an_agent_that_is_killed_takes_its_jobs_with_it(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent_process(slots=3) as agent:
            jobs = [await rig.submit("sh", "-c", FIRST_HANGS) for _ in range(3)]
            witnesses = [await started(rig, job) for job in jobs]
            agent.signal(signal.SIGKILL)
            for witness in witnesses:
                await witness.gone()

    play(tmp_path, scene)


def test_a_stopped_agent_loses_its_job_in_time_and_its_late_word_is_refused(
    tmp_path: Path,
) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent_process() as agent:
            job = await rig.submit("sh", "-c", FIRST_HANGS)
            witness = await started(rig, job)
            before = rig.clock.now_ms()
            agent.signal(signal.SIGSTOP)
            await witness.gone()
            assert rig.clock.now_ms() - before < SHORT.heartbeat_timeout_ms
            await rig.lose_silent_workers()
            lost = await rig.attempts(job)
            assert [FAILURE_BY_CODE[attempt.failure] for attempt in lost] == ["worker_lost"]
            agent.signal(signal.SIGCONT)
            record = await rig.ended(job)
            assert (state_of(record), record.facts.attempt) == ("completed", 2)
            assert [FAILURE_BY_CODE[attempt.failure] for attempt in await rig.attempts(job)] == [
                "worker_lost"
            ]

    play(tmp_path, scene, SHORT)


def test_a_cut_off_agent_stops_its_jobs_before_the_lease_ends_and_gives_them_back(
    tmp_path: Path,
) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent_process():
            job = await rig.submit("sh", "-c", FIRST_HANGS)
            witness = await started(rig, job)
            before = rig.clock.now_ms()
            rig.bridge.cut = True
            await witness.gone()
            assert rig.clock.now_ms() - before < SHORT.heartbeat_timeout_ms
            rig.bridge.cut = False
            record = await rig.ended(job)
            assert (state_of(record), record.facts.attempt) == ("completed", 2)
            assert (record.facts.failed, record.facts.lost) == (0, 0)
            (attempt,) = await rig.attempts(job)
            assert attempt.message == "no server answered"

    play(tmp_path, scene, SHORT)


def test_an_agent_without_its_keeper_gives_its_jobs_back_and_goes_on(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent() as agent:
            job = await rig.submit("sh", "-c", FIRST_HANGS)
            witness = await started(rig, job)
            keeper = Witness(agent.keeper_pid)
            await asyncio.create_subprocess_exec("kill", "-9", str(agent.keeper_pid))
            await keeper.gone()
            await witness.gone()
            record = await rig.ended(job)
            assert (state_of(record), record.facts.attempt) == ("completed", 2)
            assert (record.facts.failed, record.facts.lost) == (0, 0)

    play(tmp_path, scene)


def test_a_program_that_is_over_before_anybody_waits_has_started(tmp_path: Path) -> None:
    async def main() -> None:
        keeper = KeeperClient(tmp_path / "groups", {"PATH": os.defpath}, lambda: None)
        keeper.start()
        later = boottime() + MAX_TEST_S
        keeper.set_deadline(later, later)
        try:
            short = keeper.spawn(Program(argv=("true",), cwd="/"))
            await short.wait()
            await short.started()
            missing = keeper.spawn(Program(argv=("/nowhere",), cwd="/"))
            await missing.gone()
            with pytest.raises(SpawnFailed):
                await missing.started()
        finally:
            keeper.close()

    async def soon() -> None:
        await asyncio.wait_for(main(), MAX_TEST_S)

    run(soon())
