"""A tiny scripted worker: it says what a test tells it to, and remembers what it saw."""

from collections.abc import Mapping, Sequence
from typing import Any

from windlass.domain.lifecycle.failures import FailureClass, Raised
from windlass.domain.values.errors import Conflict
from windlass.engine.engine import Engine
from windlass.engine.fleet.enrolment import Enrolment
from windlass.messages.sync import (
    Assignment,
    Finished,
    Held,
    Outcome,
    Released,
    Started,
    SyncReply,
    SyncRequest,
)
from windlass.ports.gateway import Holder


class Agent:
    """One worker process: an incarnation, a rising `seq`, the highest lease it has seen."""

    def __init__(self, engine: Engine, name: str) -> None:
        self.engine = engine
        self.name = name
        self.id = 0
        self.incarnation = 0
        self.seq = 0
        self.received = 0

    async def enrol(
        self, slots: int = 100, metadata: Mapping[str, object] | None = None, takeover: bool = False
    ) -> None:
        """Begin a new incarnation."""
        enrolment = Enrolment(
            name=self.name, slots=slots, metadata=metadata or {}, takeover=takeover
        )
        enrolled = await self.engine.workers.enrol(enrolment)
        self.id, self.incarnation = enrolled.worker, enrolled.incarnation
        self.seq = self.received = 0

    def request(self, **fields: Any) -> SyncRequest:
        """The next sync, with the fields given; `seq` rises."""
        self.seq += 1
        chosen = {
            "incarnation": self.incarnation,
            "seq": self.seq,
            "received": self.received,
            **fields,
        }
        return SyncRequest(**chosen)

    async def send(self, request: SyncRequest) -> SyncReply:
        """Send exactly this and take in the reply."""
        reply = await self.engine.sync(self.id, request)
        self.received = max([self.received, *(job.lease for job in reply.jobs)])
        return reply

    async def sync(self, **fields: Any) -> SyncReply:
        """Send the next sync."""
        return await self.send(self.request(**fields))

    async def take(self, want: int = 1, prefetch: bool = False) -> tuple[Assignment, ...]:
        """Ask for jobs, without waiting."""
        return (await self.sync(want=want, prefetch=prefetch)).jobs

    async def take_one(self, prefetch: bool = False) -> Assignment:
        """Ask for one job that must be there."""
        (job,) = await self.take(prefetch=prefetch)
        return job

    async def start(self, job: Assignment) -> SyncReply:
        return await self.sync(started=(Started(job.job, job.attempt),))

    async def finish(
        self, job: Assignment, outcome: Outcome = "completed", **fields: Any
    ) -> SyncReply:
        """Report how an attempt ended."""
        return await self.sync(finished=(Finished(job.job, job.attempt, outcome, **fields),))

    async def fail(
        self,
        job: Assignment,
        failure: FailureClass | None = None,
        message: str | None = None,
        raised: Raised | None = None,
    ) -> SyncReply:
        """Report a failure, by its class or by a text alone."""
        name = None if failure is None else failure.value
        return await self.finish(job, "failed", failure=name, message=message, raised=raised)

    async def release(
        self, job: Assignment, reason: str | None = None, back_off: bool = False
    ) -> SyncReply:
        """Give an attempt back."""
        return await self.sync(released=(Released(job.job, job.attempt, reason, back_off),))

    async def audit(self, held: Sequence[Assignment]) -> SyncReply:
        """Say what the agent believes it holds."""
        return await self.sync(held=tuple(Held(job.job, job.attempt) for job in held))

    async def show_activity(self, job: Assignment) -> bool:
        """Show that the function of a running job is still at work."""
        holder = Holder(self.id, self.incarnation, job.job, job.attempt)
        try:
            await self.engine.steps.note_alive(holder)
        except Conflict:
            return False
        return True
