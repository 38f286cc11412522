"""What an executor of one's own can do with an attempt."""

import asyncio
from pathlib import Path

from tests.support.files import MemoryFiles
from tests.worker.rig import SHORT, Rig, play, state_of
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE
from windlass.domain.values.errors import Unreachable
from windlass.engine.engine import Engine
from windlass.messages.sync import SyncReply, SyncRequest
from windlass.ports.executor import JobContext, Result
from windlass.worker.agent.direct import DirectGateway


class Cuttable(DirectGateway):
    """A gateway that nobody answers at while `cut`; `reported` is set by a report that failed."""

    def __init__(self, engine: Engine, files: MemoryFiles) -> None:
        super().__init__(engine, files)
        self.cut = False
        self.reported = asyncio.Event()

    async def sync(self, worker: int, request: SyncRequest) -> SyncReply:
        if not self.cut:
            return await super().sync(worker, request)
        if request.released or request.finished:
            self.reported.set()
        raise Unreachable("cut off")


class Own:
    """Runs `way` for jobs of the task `own`."""

    task = "own"

    def __init__(self) -> None:
        self.began = asyncio.Event()

    async def run(self, context: JobContext) -> Result:
        self.began.set()
        return await self.way(context)

    async def way(self, context: JobContext) -> Result:
        raise NotImplementedError

    async def close(self) -> None:
        """Nothing to let go of."""


def test_it_reads_what_a_process_says_and_tells_a_result(tmp_path: Path) -> None:
    class Reader(Own):
        async def way(self, context: JobContext) -> Result:
            (context.scratch / "here").write_text("found")
            script = "cat here; echo aside >&2"
            process = await context.spawn(["sh", "-c", script], capture=True)
            assert process.stdout is not None
            said = await process.stdout.read()
            await process.wait()
            context.progress({"percent": 100})
            return Result(exit_code=0, result={"said": said.decode(), "args": context.args})

    async def scene(rig: Rig) -> None:
        async with rig.agent(executors={"own": Reader()}):
            job = await rig.submit(task="own", args=[1, 2])
            record = await rig.ended(job)
            assert record.result == b'{"said":"found","args":[1,2]}'
            assert await rig.files.log_end(job) == b"aside\n"
        assert rig.files.told == [(job, {"percent": 100})]

    play(tmp_path, scene)


def test_an_error_in_it_fails_the_job_and_a_bad_result_is_a_misfit(tmp_path: Path) -> None:
    class Broken(Own):
        async def way(self, context: JobContext) -> Result:
            if context.args == "raise":
                raise RuntimeError("oh no")
            return Result(result=object())

    async def scene(rig: Rig) -> None:
        async with rig.agent(executors={"own": Broken()}):
            record = await rig.ended(await rig.submit(task="own", args="raise"))
            assert FAILURE_BY_CODE[record.failure] == "execution"
            assert record.message == "RuntimeError: oh no"
            record = await rig.ended(await rig.submit(task="own", args="odd"))
            assert FAILURE_BY_CODE[record.failure] == "configuration"

    play(tmp_path, scene)


def test_one_that_runs_inside_the_agent_is_told_to_stop_when_the_server_is_gone(
    tmp_path: Path,
) -> None:
    class Inside(Own):
        async def way(self, context: JobContext) -> Result:
            if context.attempt == 1:
                await context.stopping.wait()
            return Result()

    async def scene(rig: Rig) -> None:
        executor = Inside()
        gateway = Cuttable(rig.engine, rig.files)
        async with rig.agent(executors={"own": executor}, gateway=gateway):
            job = await rig.submit(task="own", args=None)
            await executor.began.wait()
            executor.began.clear()
            gateway.cut = True
            await gateway.reported.wait()
            gateway.cut = False
            record = await rig.ended(job)
            assert state_of(record) == "completed"

    play(tmp_path, scene, SHORT)


def test_one_that_does_not_listen_is_cut_off(tmp_path: Path) -> None:
    class Deaf(Own):
        async def way(self, context: JobContext) -> Result:
            await asyncio.Event().wait()
            return Result()

    async def scene(rig: Rig) -> None:
        executor = Deaf()
        async with rig.agent(executors={"own": executor}):
            job = await rig.submit(task="own", args=None)
            await executor.began.wait()
            await rig.engine.jobs.cancel([job])
            assert state_of(await rig.ended(job)) == "canceled"

    play(tmp_path, scene, SHORT)
