"""Reasons from an embedded client: the same words as a server's."""

from pathlib import Path

import pytest

import windlass
from windlass.domain.values.errors import NotFound


def test_jobs_and_workers_are_explained_without_a_server(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=0) as client:
        job = client.submit(
            windlass.JobSpec(task="shell", args={"argv": ["true"]}, requires=("memory>=8TiB",))
        )
        found = job.explain()
        assert found == client.explain(job.id)
        assert found.summary == "queued: waits for a worker: none is known"
        assert {part.cause for part in job.time_spent().parts} <= {"no_worker"}
        with pytest.raises(NotFound, match="worker nobody"):
            client.explain_worker("nobody")
        with pytest.raises(NotFound, match="job 99"):
            client.explain(99)


def test_the_worker_of_the_program_itself_can_be_asked(tmp_path: Path) -> None:
    with windlass.Client.embedded(tmp_path / "jobs.db", workers=1) as client:
        client.submit("shell", argv=["true"]).wait(timeout=60)
        found = client.explain_worker(1)
        assert found.slots == 1
        assert client.explain_worker(found.worker).id == found.id
