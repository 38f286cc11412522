"""A worker with resources instead of slots runs as many jobs as fit, and never more."""

from pathlib import Path
from typing import Any

from tests.worker.rig import Rig, play, state_of

# Says that it runs, and ends when its gate is opened.
GATED = 'echo running; while [ ! -e "$GATE" ]; do sleep 0.02; done'


class Gates:
    """Jobs that run until they are let go."""

    def __init__(self, rig: Rig, folder: Path) -> None:
        self._rig = rig
        self._folder = folder
        self._jobs: dict[int, Path] = {}

    async def submit(self, **fields: Any) -> int:
        gate = self._folder / f"gate-{len(self._jobs)}"
        job = await self._rig.submit("sh", "-c", GATED, env={"GATE": str(gate)}, **fields)
        self._jobs[job] = gate
        return job

    async def running(self, *jobs: int) -> None:
        for job in jobs:
            await self._rig.files.log_line(job)

    async def open(self, job: int) -> None:
        self._jobs[job].touch()
        assert state_of(await self._rig.ended(job)) == "completed"


def test_jobs_run_at_once_while_they_fit(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        gates = Gates(rig, tmp_path)
        offered = {"system:cpus": 4, "system:gpus": 1, "system:shares": True}
        async with rig.agent(slots=4, metadata=offered):
            two = await gates.submit(resources={"cpus": 2, "gpus": 1})
            one, other = await gates.submit(), await gates.submit()
            await gates.running(two, one, other)
            # All processors are taken now.
            big = await gates.submit(resources={"cpus": 3})
            small = await gates.submit()
            await gates.open(one)
            await gates.running(small)  # the large one does not hold it back
            await gates.open(other)
            assert (big, 1) not in rig.files.logs  # one is left, and it needs three
            await gates.open(two)
            await gates.running(big)
            await gates.open(big)
            await gates.open(small)
            assert (await rig.record(big)).facts.returned == 0

    play(tmp_path, scene)


def test_a_graphics_card_is_given_to_one_job_at_a_time(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        offered = {"system:cpus": 8, "system:gpus": 1}
        async with rig.agent(slots=8, metadata=offered):
            alone = 'mkdir "$CARD" || exit 9; sleep 0.1; rmdir "$CARD"'
            card = {"CARD": str(tmp_path / "card")}
            jobs = [
                await rig.submit("sh", "-c", alone, env=card, resources={"gpus": 1})
                for _ in range(5)
            ]
            for job in jobs:
                assert state_of(await rig.ended(job)) == "completed"

    play(tmp_path, scene)
