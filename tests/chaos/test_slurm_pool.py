"""A pool on a real Slurm cluster: its agents enrol, do the work, and their jobs end."""

import json
import os
import sys
from pathlib import Path

import pytest

from tests.support.debian import missing_reason
from tests.support.fleet import Fleet
from tests.support.running import run
from tests.support.slurm import Slurm, start_slurm
from tests.support.waiting import until
from windlass.client.client import AsyncClient
from windlass.domain.job.job import JobSpec

LIMIT_S = 180
MISSING = missing_reason("slurmctld")
TIMES = (
    "--set", "heartbeat_interval=2s", "--set", "heartbeat_timeout=60s", "--set", "term_grace=1s",
    "--set", "pools_interval=500ms",
)  # fmt: skip


async def play(folder: Path, cluster: Slurm) -> None:
    pool = folder / "pool.json"
    setup = f"export PATH={Path(sys.executable).parent}:$PATH HOME={folder}"
    options = {"setup": setup, "chdir": str(folder), "output": str(folder / "agents.log")}
    described = {
        "name": "cluster", "provider": "slurm", "options": options, "max_workers": 2,
        "target_latency_seconds": 5, "max_idle_seconds": 1, "expected_seconds": 5,
    }  # fmt: skip
    pool.write_text(json.dumps(described))
    store = f"sqlite://{folder}/windlass.db"
    fleet = Fleet(folder, store, times=TIMES, variables={"SLURM_CONF": cluster.conf})
    try:
        await fleet.start_servers()
        assert await fleet.run("pools", "apply", str(pool)) == (0, b"cluster: applied\n")
        async with AsyncClient(fleet.address, fleet.token) as client:
            line = 'echo "$SLURM_JOB_NAME"'
            request = JobSpec(task="shell", args={"argv": ["sh", "-c", line]})
            jobs = await client.submit_many([request] * 6)

            async def done() -> bool:
                states = [(await job.info()).state for job in jobs]
                return states == ["completed"] * len(jobs)

            async def gone() -> bool:
                return not (await client.pools.show("cluster")).workers and not cluster.names()

            await until("the jobs are done", done, LIMIT_S)
            await until("the agents' jobs ended", gone, LIMIT_S)
    except BaseException as error:
        error.add_note(fleet.tails())
        raise
    finally:
        await fleet.stop()


@pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
def test_agents_come_and_go_as_slurm_jobs(tmp_path: Path) -> None:
    os.environ.pop("SLURM_CONF", None)
    cluster = start_slurm()
    try:
        run(play(tmp_path, cluster))
    finally:
        cluster.stop()
