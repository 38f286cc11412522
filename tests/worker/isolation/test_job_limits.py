"""Limits of jobs and workers: a job over one fails, and its failure names the limit."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.support.debian import missing_reason
from tests.support.unprivileged import open_python, skip_reason
from tests.worker.rig import Rig, play, state_of
from windlass.domain.job.forms import JobLimits
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE
from windlass.domain.matching.workers import WorkerStatus
from windlass.ports.executor import Limits
from windlass.worker.attempt.processes import combined

GREEDY = "kept = []\nwhile True: kept.append(b'x' * 10_000_000)"
# Each process stays below the limit; together they are over it.
BUSY = "import os\nos.fork(); os.fork()\nwhile True: pass"
FORKS = """
import os, time
for _ in range(30):
    if os.fork() == 0:
        time.sleep(60)
        os._exit(0)
time.sleep(60)
"""
ONE_FILE = "file = open('f', 'wb')\nwhile True: file.write(bytes(1_000_000))"
FILES = "open('a', 'wb').write(bytes(6_000_000)); open('b', 'wb').write(bytes(6_000_000))"
WAIT = "\nimport time; time.sleep(60)"
OPENS = "import os\nkept = [os.open('/dev/null', 0) for _ in range(100)]"

CASES: list[tuple[str, dict[str, Any], str]] = [
    (GREEDY, {"memory": "100MiB"}, "more than its limit of 100 MiB"),
    (BUSY, {"cpu_time": 1}, "CPU time over its limit of 1 s"),
    (FORKS, {"processes": 10}, "processes than its limit of 10"),
    # Python gets an error at the limit, and names it; or its folder is measured before that.
    (ONE_FILE, {"disk": "10MB"}, r"its limits: disk 10 MB|disk use over its limit of 10 MB"),
    (FILES + WAIT, {"disk": "10MB"}, "disk use over its limit of"),
    (OPENS, {"open_files": 50}, "open_files 50"),
]


@pytest.mark.parametrize("mode", ["process", "user", "sandbox"])
def test_a_job_over_a_limit_fails_and_names_it(tmp_path: Path, mode: str) -> None:
    why = missing_reason("bwrap") if mode == "sandbox" else skip_reason(mode)
    if why is not None:
        pytest.skip(why)

    async def scene(rig: Rig) -> None:
        async with rig.agent(isolation=mode, slots=len(CASES)):
            jobs = [await _submit(rig, code, limits) for code, limits, _ in CASES]
            for job, (code, limits, message) in zip(jobs, CASES, strict=True):
                record = await rig.ended(job)
                assert state_of(record) == "failed", (limits, record.message)
                if code == FORKS and mode != "process":
                    # The system refused to fork, and the program said so.
                    assert "exit code 1" in (record.message or ""), record.message
                    continue
                assert re.search(message, record.message or ""), (limits, record.message)
                if "exit code" not in (record.message or ""):
                    assert FAILURE_BY_CODE[record.failure] == "resource"

    play(tmp_path, scene)


def test_jobs_over_their_own_limits_do_not_drain_their_worker(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(slots=5):
            jobs = [await _submit(rig, FILES + WAIT, {"disk": "10MB"}) for _ in range(5)]
            for job in jobs:
                record = await rig.ended(job)
                assert FAILURE_BY_CODE[record.failure] == "resource"
            (worker,) = await rig.engine.store.read(lambda tx: tx.workers.all())
            assert WorkerStatus(worker.status) is WorkerStatus.ONLINE

    play(tmp_path, scene)


async def _submit(rig: Rig, code: str, limits: dict[str, Any]) -> int:
    return await rig.submit(open_python(), "-S", "-c", code, retries=0, limits=JobLimits(**limits))


def test_the_most_of_a_worker_holds_for_every_job(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(limits=JobLimits(open_files=50)):
            job = await rig.submit(open_python(), "-S", "-c", OPENS, retries=0)
            assert "open_files 50" in ((await rig.ended(job)).message or "")

    play(tmp_path, scene)


def test_the_least_of_all_limits_counts() -> None:
    own = JobLimits(memory=100, cpu_time=1.5, processes=7)
    most = JobLimits(memory=50, disk=10)
    assert combined(Limits(80, 9, (1,)), own, most) == Limits(50, 2, (1,), 7, 0, 10)
    assert combined(None, None, None) is None
