"""Drive an engine as workers do: submit, and one sync that reports and claims."""

from collections.abc import Sequence
from typing import Any

from benchmarks.measure import Lap, Watch
from windlass.domain.job.job import JobSpec
from windlass.engine.engine import Engine
from windlass.engine.fleet.enrolment import Enrolment
from windlass.messages.sync import Finished, SyncReply, SyncRequest

TASK = "noop"
RESULT = {"ok": True}
RESULT_BYTES = b'{"ok":true}'
MAX_SLOTS = 1_000


def specs(count: int, first: int = 0, resources: dict[str, Any] | None = None) -> list[JobSpec]:
    """Small jobs that differ in their arguments."""
    return [
        JobSpec(task=TASK, args={"n": n}, resources=resources) for n in range(first, first + count)
    ]


def spec_bytes(n: int) -> bytes:
    """Job number `n` of `specs` as the engine stores it."""
    return b'{"task":"%s","args":{"n":%d}}' % (TASK.encode(), n)


class BenchWorker:
    """A worker that runs nothing: what it was given last time is finished this time."""

    def __init__(self, engine: Engine, worker: int, incarnation: int) -> None:
        self._engine = engine
        self._worker = worker
        self._incarnation = incarnation
        self._seq = 0
        self._received = 0
        self._finished: tuple[Finished, ...] = ()

    @classmethod
    async def enrol(cls, engine: Engine, name: str = "w", **metadata: object) -> "BenchWorker":
        enrolment = Enrolment(name=name, slots=MAX_SLOTS, metadata=metadata, takeover=True)
        enrolled = await engine.workers.enrol(enrolment)
        return cls(engine, enrolled.worker, enrolled.incarnation)

    async def sync(self, want: int) -> int:
        """Report what was held and claim up to `want`; how many were given."""
        reply = await self._say(want)
        finished = [Finished(a.job, a.attempt, result=RESULT) for a in reply.jobs]
        self._finished = tuple(finished)
        if reply.jobs:
            self._received = reply.jobs[-1].lease
        return len(reply.jobs)

    async def drain(self, batch: int) -> int:
        """Claim and complete until nothing is left; how many jobs."""
        jobs = 0
        while given := await self.sync(batch):
            jobs += given
        return jobs

    async def _say(self, want: int) -> SyncReply:
        self._seq += 1
        request = SyncRequest(
            incarnation=self._incarnation,
            seq=self._seq,
            received=self._received,
            finished=self._finished,
            want=want,
        )
        return await self._engine.sync(self._worker, request)


async def cycle(engine: Engine, worker: BenchWorker, batches: Sequence[Sequence[JobSpec]]) -> Lap:
    """Take each batch through submit, claim and completion."""
    watch = Watch()
    jobs = 0
    for batch in batches:
        await engine.submit(batch)
        jobs += await worker.sync(len(batch))
    await worker.sync(0)
    return watch.lap(jobs)
