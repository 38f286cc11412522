"""Limits on memory and CPU time: a job over them fails with the class `resource`."""

import sys
from pathlib import Path

import pytest

from tests.worker.rig import Rig, play, state_of
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE

GREEDY = "kept = []\nwhile True: kept.append(b'x' * 10_000_000)"
BUSY = "while True: pass"


@pytest.mark.parametrize(
    ("code", "limits", "message"),
    [
        (GREEDY, {"memory": "100MiB"}, "out of memory"),
        (BUSY, {"cpu_time": 1}, "CPU time over its limit of 1 s"),
    ],
)
def test_a_job_over_its_limits_is_stopped(
    tmp_path: Path, code: str, limits: dict[str, object], message: str
) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            job = await rig.submit(sys.executable, "-S", "-c", code, retries=0, **limits)
            record = await rig.ended(job)
            assert state_of(record) == "failed"
            assert FAILURE_BY_CODE[record.failure] == "resource"
            assert message in (record.message or "")

    play(tmp_path, scene)


def test_a_job_within_its_limits_completes(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent():
            job = await rig.submit("sh", "-c", "echo fine", memory="1GiB", cpu_time="1m")
            assert state_of(await rig.ended(job)) == "completed"
            assert await rig.files.log_end(job) == b"fine\n"
            missing = await rig.submit("/no/such/program", memory="1GiB")
            record = await rig.ended(missing)
            assert FAILURE_BY_CODE[record.failure] == "configuration"

    play(tmp_path, scene)


def test_what_a_program_took_at_most_is_told_with_the_end_of_its_log(tmp_path: Path) -> None:
    hungry = "kept = bytearray(80_000_000); print(len(kept))"

    async def scene(rig: Rig) -> None:
        async with rig.agent():
            job = await rig.submit(sys.executable, "-S", "-c", hungry)
            assert state_of(await rig.ended(job)) == "completed"
            await rig.files.log_end(job)
            assert 80_000_000 < rig.files.peaks[job] < 800_000_000

    play(tmp_path, scene)
