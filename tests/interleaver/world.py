"""What a run begins with: workers and jobs, known by labels.

Every job carries its label in its arguments, so that jobs can be compared between runs
in which they got other numbers.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from tests.interleaver.stage import CONFIG, HotStep, Stage, Step
from tests.support.specs import spec_of
from windlass.domain.job.forms import Concurrency
from windlass.domain.job.job import JobSpec
from windlass.domain.job.validation import Validator
from windlass.engine.fleet.enrolment import Enrolment
from windlass.engine.fleet.queues import set_limits
from windlass.engine.fleet.workers import enrol
from windlass.engine.submit.submission import Submission, Submitted, WorkflowSpec
from windlass.engine.submit.write_jobs import submit
from windlass.engine.sync.sync import SyncCall, sync
from windlass.engine.workflows import advance
from windlass.messages.sync import Assignment, Finished, SyncReply, SyncRequest
from windlass.messages.workers import QueueLimits

START_MS = 1_700_000_000_000
SECOND = 1_000
MINUTE = 60_000
HOUR = 3_600_000

VALIDATOR = Validator(CONFIG)


class WorkerFacts(msgspec.Struct):
    """A worker as its agent knows itself."""

    id: int
    incarnation: int
    seq: int = 0
    received: int = 0


class World:
    """Sets the stage through the engine's own commands, then stays as it is."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.now = START_MS
        self.jobs: dict[str, int] = {}
        self.held: dict[str, Assignment] = {}
        self.workers: dict[str, WorkerFacts] = {}
        self.workflows: dict[str, int] = {}

    async def worker(self, name: str, slots: int = 100) -> None:
        """Enrol a worker."""
        enrolled = await self._stage.hand.run(
            lambda work, _: enrol(work, Enrolment(name=name, slots=slots))
        )
        self.workers[name] = WorkerFacts(enrolled.worker, enrolled.incarnation)

    async def submit(self, *jobs: JobSpec, workflow: str = "") -> None:
        """Submit jobs in one go; optionally as a new workflow."""
        submission = submission_of(jobs, workflow)
        done = (await self._stage.hand.run(lambda work, _: submit(work, [submission])))[0]
        assert isinstance(done, Submitted)
        self.jobs.update(zip(map(label_of, jobs), done.ids, strict=True))
        if workflow:
            self.workflows[workflow] = done.known_workflow

    async def limit(self, most: int, queue: str = "default") -> None:
        """No more of a queue may run, and every server knows it."""
        limits = QueueLimits(max_running=most)
        hand = self._stage.hand
        await hand.run(lambda work, _: set_limits(work, queue, limits, None))
        await hand.run(lambda work, _: work.catalog.refresh(work.tx))

    async def sync(self, worker: str, **fields: Any) -> SyncReply:
        """A worker says something, and takes in the answer."""
        request = self.request(worker, **fields)
        facts = self.workers[worker]
        (reply,) = await self._stage.hand.run(
            lambda work, bounds: sync(work, bounds, [SyncCall(facts.id, request)])
        )
        assert isinstance(reply, SyncReply), reply
        facts.seq = request.seq
        labels = {job: label for label, job in self.jobs.items()}
        for job in reply.jobs:
            self.held[labels[job.job]] = job
            facts.received = max(facts.received, job.lease)
        return reply

    async def take(self, worker: str, *labels: str, prefetch: bool = False) -> None:
        """A worker is given the best ready jobs; the test says which these are."""
        reply = await self.sync(worker, want=len(labels), prefetch=prefetch)
        assert sorted(job.job for job in reply.jobs) == sorted(self.jobs[name] for name in labels)

    async def finish(self, worker: str, label: str, outcome: str = "completed") -> None:
        """A worker reports how an attempt ended."""
        await self.sync(worker, finished=(self.finished(label, outcome),))

    async def run(self, command: "Callable[[World], Step[Any] | HotStep]") -> None:
        """Someone runs a command."""
        step = command(self)
        await self._stage.hand.run(step.ordinary if isinstance(step, HotStep) else step)

    async def name_newest(self, label: str) -> None:
        """Remember the youngest job, which a retry by hand has made, by this label."""
        snapshot = await self._stage.store.snapshot()
        self.jobs[label] = max(row.facts.id for row in snapshot.jobs)

    async def cascade(self) -> None:
        """Work off all intents."""
        while await self._stage.hand.run(lambda work, _: advance(work)):
            pass

    async def pass_time(self, ms: int) -> None:
        self.now += ms
        await self._stage.set_clock(self.now)

    def request(self, worker: str, **fields: Any) -> SyncRequest:
        """The worker's next sync."""
        facts = self.workers[worker]
        known = {
            "incarnation": facts.incarnation,
            "seq": facts.seq + 1,
            "received": facts.received,
        }
        return SyncRequest(**{**known, **fields})

    def finished(self, label: str, outcome: str = "completed", **fields: Any) -> Finished:
        """The report that ends the attempt in force."""
        job = self.held[label]
        return Finished(job.job, job.attempt, outcome, **fields)  # type: ignore[arg-type]


def job(label: str, task: str = "t", *, limit: str = "", most: int = 1, **fields: Any) -> JobSpec:
    """A job that is known by its label, optionally under a concurrency limit."""
    concurrency = Concurrency(limit, most) if limit else None
    return spec_of(task=task, args={"label": label}, concurrency=concurrency, **fields)


def label_of(spec: JobSpec) -> str:
    label: str = spec.args["label"]
    return label


def submission_of(jobs: Sequence[JobSpec], workflow: str = "") -> Submission:
    """What the engine's submit takes."""
    group = WorkflowSpec(name=workflow) if workflow else None
    return Submission([VALIDATOR.validate(spec) for spec in jobs], group)
