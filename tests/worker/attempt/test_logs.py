"""Logs: a flood holds up its job and nothing else; the end is kept; a lost one harms nobody."""

from pathlib import Path
from typing import Any

from tests.worker.rig import Rig, play, state_of
from windlass.domain.values.errors import Unreachable
from windlass.ports.gateway import Holder
from windlass.worker.agent.direct import DirectGateway

MIB = 1024 * 1024


def test_a_log_without_a_limit_is_kept_whole(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        gateway = DirectGateway(rig.engine, rig.files, log_limit=0)
        async with rig.agent(gateway=gateway):
            script = f"head -c {100 * MIB} /dev/zero"
            job = await rig.submit("sh", "-c", script)
            record = await rig.ended(job)
            assert (state_of(record), record.facts.attempt) == ("completed", 1)
            log = await rig.files.log_end(job)
            assert len(log) == 100 * MIB

    play(tmp_path, scene)


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


class Deaf:
    """Takes no logs."""

    def __init__(self, inner: DirectGateway) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def append_log(self, holder: Holder, offset: int, data: bytes) -> int:
        raise Unreachable("nobody is there")
