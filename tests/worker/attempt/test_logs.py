"""Logs: a flood holds up its job and nothing else; the end is kept; a lost one harms nobody."""

from pathlib import Path
from typing import Any

from tests.worker.rig import SHORT, Rig, play, state_of
from windlass.domain.values.errors import Unreachable
from windlass.ports.gateway import Holder
from windlass.worker.agent.direct import DirectGateway

MIB = 1024 * 1024


def test_heartbeats_go_on_while_a_job_floods_its_log(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        gateway = DirectGateway(rig.engine, rig.files, log_limit=0)
        syncs = Watched(gateway)
        async with rig.agent(gateway=syncs):
            script = f"head -c {100 * MIB} /dev/zero"
            job = await rig.submit("sh", "-c", script)
            record = await rig.ended(job)
            assert (state_of(record), record.facts.attempt) == ("completed", 1)
            log = await rig.files.log_end(job)
            assert len(log) == 100 * MIB
        assert syncs.longest_ms < SHORT.heartbeat_interval_ms * 4

    play(tmp_path, scene, SHORT)


def test_over_the_limit_the_middle_is_left_out_and_the_end_is_kept(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        gateway = DirectGateway(rig.engine, rig.files, log_limit=MIB)
        async with rig.agent(gateway=gateway):
            job = await rig.submit(
                "sh", "-c", f"echo first; head -c {5 * MIB} /dev/zero; echo last"
            )
            await rig.ended(job)
            log = await rig.files.log_end(job)
            assert log.startswith(b"first\n")
            assert log.endswith(b"last\n")
            assert b"bytes left out: the log's limit" in log
            assert len(log) < MIB + 100

    play(tmp_path, scene)


def test_a_log_that_cannot_be_kept_fails_no_job(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(gateway=Deaf(rig.gateway)):
            job = await rig.submit("echo", "hello")
            assert state_of(await rig.ended(job)) == "completed"

    play(tmp_path, scene)


class Watched:
    """Notes how long the agent was silent between two syncs."""

    def __init__(self, inner: DirectGateway) -> None:
        self._inner = inner
        self._last = 0.0
        self.longest_ms = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def sync(self, worker: int, request: Any) -> Any:
        import asyncio

        now = asyncio.get_running_loop().time()
        if self._last:
            self.longest_ms = max(self.longest_ms, (now - self._last) * 1000)
        self._last = now
        return await self._inner.sync(worker, request)


class Deaf:
    """Takes no logs."""

    def __init__(self, inner: DirectGateway) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def append_log(self, holder: Holder, offset: int, data: bytes) -> int:
        raise Unreachable("nobody is there")
