"""Lost replies, doubled and late syncs, and an unreachable server heal by themselves."""

from pathlib import Path
from typing import Any

import pytest

from tests.worker.rig import Rig, play, state_of
from windlass.domain.values.errors import Unreachable
from windlass.messages.sync import EnrolReply, EnrolRequest, SyncReply, SyncRequest
from windlass.worker.agent.direct import DirectGateway


class FaultyGateway:
    """Passes everything on, and has trouble with every third sync, in turn."""

    def __init__(self, inner: DirectGateway, trouble: str) -> None:
        self._inner = inner
        self._trouble = trouble
        self._count = 0
        self._late: list[tuple[int, SyncRequest]] = []
        self.troubles = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    async def enrol(self, request: EnrolRequest) -> EnrolReply:
        return await self._inner.enrol(request)

    async def sync(self, worker: int, request: SyncRequest) -> SyncReply:
        self._count += 1
        said = request.finished or request.released or request.want
        if self._count % 3 or not said:
            return await self._inner.sync(worker, request)
        self.troubles += 1
        if self._trouble == "request lost":
            raise Unreachable("lost on the way")
        if self._trouble == "doubled":
            await self._inner.sync(worker, request)
            return await self._inner.sync(worker, request)
        if self._trouble == "late":
            for old in self._late:
                await self._inner.sync(*old)
            self._late = [(worker, request)]
            return await self._inner.sync(worker, request)
        await self._inner.sync(worker, request)
        raise Unreachable("the reply was lost")


@pytest.mark.parametrize("trouble", ["reply lost", "request lost", "doubled", "late"])
def test_every_job_runs_once_whatever_happens_to_syncs(tmp_path: Path, trouble: str) -> None:
    async def scene(rig: Rig) -> None:
        faulty = FaultyGateway(rig.gateway, trouble)
        runs = tmp_path / "runs"
        runs.mkdir()
        script = f"mkdir {runs}/$WINDLASS_JOB"
        async with rig.agent(gateway=faulty, slots=3):
            jobs = [await rig.submit("sh", "-c", script) for _ in range(30)]
            for job in jobs:
                record = await rig.ended(job)
                assert (state_of(record), record.facts.attempt) == ("completed", 1)
        assert faulty.troubles > 3
        assert sorted(int(path.name) for path in runs.iterdir()) == sorted(jobs)

    play(tmp_path, scene)


def test_an_agent_waits_for_a_server_that_is_not_there_yet(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        rig.bridge.cut = True
        job = await rig.submit("true")
        async with rig.agent_process():
            while not rig.bridge.refused:
                await rig.bridge.visited.wait()
            rig.bridge.cut = False
            assert state_of(await rig.ended(job)) == "completed"

    play(tmp_path, scene)


def test_a_task_the_worker_does_not_run_is_declined_and_the_next_job_runs(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        # The operator allows what the worker cannot do.
        async with rig.agent() as agent:
            await rig.engine.workers.set_metadata(
                agent.worker, {"tasks_allowlist": ["shell", "odd"]}
            )
            odd = await rig.submit("true", task="odd", name="odd")
            job = await rig.submit("true")
            assert state_of(await rig.ended(job)) == "completed"
            await rig.engine.jobs.cancel([odd])
            record = await rig.ended(odd)
            assert state_of(record) == "canceled"
            assert record.facts.excluded

    play(tmp_path, scene)


def test_a_removed_worker_enrols_anew(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent() as agent:
            first = agent.worker
            assert state_of(await rig.ended(await rig.submit("true"))) == "completed"
            await rig.engine.workers.remove(first)
            await rig.engine.refresh()
            job = await rig.submit("true")
            assert state_of(await rig.ended(job)) == "completed"
            assert agent.worker != first

    play(tmp_path, scene)
