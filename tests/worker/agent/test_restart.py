"""Restarts under the same name: takeover, and what forbids it (mechanics 8)."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from tests.support.waiting import until
from tests.worker.rig import Rig, Witness, play, state_of
from windlass.clock import RealChance, RealClock
from windlass.domain.values.errors import Conflict
from windlass.worker.agent.agent import Agent
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.agent.state import StateDirectory
from windlass.worker.core.agent_core import RIVALRY
from windlass.worker.keeper.client import MARKER, kill_leftovers
from windlass.worker.keeper.processes import boottime
from windlass.worker.keeper.record import boot_id

FIRST_HANGS = 'echo $$; [ "$WINDLASS_ATTEMPT" != 1 ] || exec sleep 1000'


def test_a_restarted_agent_takes_over_at_once(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent_process() as first:
            job = await rig.submit("sh", "-c", FIRST_HANGS)
            (pid,) = await rig.files.log_line(job)
            witness = Witness(int(pid))
            first.signal(signal.SIGKILL)
            await first.process.wait()
            async with rig.agent_process():
                record = await rig.ended(job)
                assert (state_of(record), record.facts.attempt) == ("completed", 2)
                await witness.gone()

    play(tmp_path, scene)


def test_nothing_runs_on_when_agent_and_keeper_are_killed_together(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent_process() as first:
            job = await rig.submit("sh", "-c", FIRST_HANGS)
            (pid,) = await rig.files.log_line(job)
            witness = Witness(int(pid))
            first.signal(signal.SIGSTOP)
            os.kill(witness.parent, signal.SIGKILL)
            first.signal(signal.SIGKILL)
            await first.process.wait()
            await witness.gone()
            async with rig.agent_process():
                record = await rig.ended(job)
                assert (state_of(record), record.facts.attempt) == ("completed", 2)

    play(tmp_path, scene)


def test_one_directory_serves_one_agent(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            with pytest.raises(Conflict, match="another worker runs on"):
                async with rig.agent():
                    pass

    play(tmp_path, scene)


def test_another_directory_cannot_take_over_a_name(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent_process():
            job = await rig.submit("sh", "-c", "echo $$; exec sleep 1000")
            (pid,) = await rig.files.log_line(job)
            witness = Witness(int(pid))
            other = StateDirectory(rig.folder / "elsewhere")
            other.close()
            with pytest.raises(Conflict) as refused:
                await rig.enrol("w", takeover=True, replaces=other.memory.incarnation)
            assert refused.value.code == "name_in_use"
            assert witness.alive

    play(tmp_path, scene)


def test_strangers_are_never_killed(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        stranger = await asyncio.create_subprocess_exec("sleep", "1000", start_new_session=True)
        ours = await asyncio.create_subprocess_exec(
            "sleep", "1000", start_new_session=True, env={**os.environ, MARKER: "mine"}
        )
        record = tmp_path / "groups"
        long_ago = int(boottime() * 1000) - 60_000
        record.write_bytes(boot_id() + b"\n%d %d\n" % (stranger.pid, long_ago))
        assert await kill_leftovers(record, "mine", RealClock(), 5_000)
        assert await ours.wait() == -signal.SIGKILL
        record.write_bytes(b"another boot\n%d %d\n" % (stranger.pid, long_ago + 120_000))
        assert await kill_leftovers(record, "mine", RealClock(), 5_000)
        assert stranger.returncode is None
        stranger.kill()
        await stranger.wait()

    play(tmp_path, scene)


def test_two_agents_of_one_name_do_not_fight_for_ever(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        options = WorkerOptions(name="w", state=tmp_path / "elsewhere")
        rival = Agent(rig.gateway, options, {}, rig.clock, RealChance())
        async with rig.agent("w") as agent:
            fighting = asyncio.create_task(rival.run())

            async def one_yields() -> bool:
                return max(agent.core.evictions, rival.core.evictions) >= RIVALRY

            await until("one of them yields", one_yields, 60)
            (worker,) = (await rig.store.snapshot()).workers
            assert worker.incarnation <= 4 * RIVALRY
            rival.stop()  # also in the midst of its pause
            await fighting

    play(tmp_path, scene)
