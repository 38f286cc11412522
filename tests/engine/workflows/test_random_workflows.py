"""Random graphs of jobs with random outcomes, told twice and out of order, and cancellations.

In the end every workflow has ended, its counts equal a recount, each join fired once, and
`verify`, which the fixture runs, finds nothing.
"""

from typing import Any, NamedTuple

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, Rig
from tests.engine.support.rigs import Rigs
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import State
from windlass.domain.lifecycle.workflow_state import ENDED, WorkflowState
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import WindlassError
from windlass.engine.submit.submission import WorkflowSpec
from windlass.messages.sync import Assignment, Finished

BLOCKED = State.BLOCKED.code
QUEUED = State.QUEUED.code
OUTCOMES = ("completed", "completed", "completed", "failed", "network", "canceled")
ROUNDS = 400


class Node(NamedTuple):
    """A job: which of those before it it waits for, and how its attempts end."""

    after: frozenset[int]
    after_any: frozenset[int]
    allow_failure: bool
    manual: bool
    outcomes: tuple[str, ...]


class Story(NamedTuple):
    """What happens to one workflow, beside its jobs' running."""

    nodes: list[Node]
    fail_fast: bool
    batches: list[int]  # how many jobs are taken at a time
    shuffle: int
    commands: dict[int, str]  # round → what is asked for then


@st.composite
def stories(draw: Any) -> Story:
    nodes = []
    for number in range(draw(st.integers(0, 12))):
        before = st.integers(0, number - 1) if number else st.nothing()
        some = st.frozensets(before, max_size=3) if number else st.just(frozenset())
        nodes.append(
            Node(
                draw(some),
                draw(some),
                draw(st.booleans()),
                draw(st.integers(0, 9)) == 0,
                tuple(draw(st.lists(st.sampled_from(OUTCOMES), min_size=1, max_size=3))),
            )
        )
    commands = st.sampled_from(["cancel", "retry", "cancel_one", "retry_one", "join", "crash"])
    return Story(
        nodes,
        draw(st.booleans()),
        draw(st.lists(st.integers(1, 4), min_size=1, max_size=4)),
        draw(st.integers(0, 1_000)),
        draw(st.dictionaries(st.integers(0, 12), commands, max_size=4)),
    )


class Run:
    """One story on one store."""

    def __init__(self, rig: Rig, story: Story) -> None:
        self.rig = rig
        self.story = story
        self.workflow = 0
        self.ids: list[int] = []
        self._told: dict[int, int] = {}  # job → attempts that were told

    async def play(self) -> None:
        await self._submit()
        agent = await self.rig.agent()
        last: list[Finished] = []
        for number in range(ROUNDS):
            await self._command(self.story.commands.get(number, ""))
            agent.engine = self.rig.engine
            want = self.story.batches[number % len(self.story.batches)]
            taken = await agent.take(want)
            reports = [self._report(job) for job in taken]
            turn = (self.story.shuffle + number) % (len(reports) or 1)
            reports = reports[turn:] + reports[:turn]
            # What was told in the last round is told again, before or behind what is new.
            said = [*reports, *last] if number % 2 else [*last, *reports]
            reply = await agent.sync(finished=tuple(said))
            await self._stop(agent, reply.cancel)
            last = reports
            await self.rig.engine.settled()
            if not taken and not await self._go_on(number, agent.id):
                return
        raise AssertionError("the workflow did not end")

    async def _submit(self) -> None:
        specs = [
            JobSpec(
                task="shell", name=f"n{number}",
                after=tuple(f"n{n}" for n in sorted(node.after)),
                after_any=tuple(f"n{n}" for n in sorted(node.after_any)),
                allow_failure=node.allow_failure,
                unblock="manual" if node.manual else "auto", retries=1,
            )
            for number, node in enumerate(self.story.nodes)
        ]  # fmt: skip
        made = await self.rig.engine.submit(
            specs, WorkflowSpec(name="w", fail_fast=self.story.fail_fast)
        )
        self.workflow, self.ids = made.known_workflow, list(made.ids)

    def _report(self, job: Assignment) -> Finished:
        """How this attempt ends: as the story says, by job and how often it was tried."""
        place = (job.job - self.ids[0]) % len(self.story.nodes) if self.story.nodes else 0
        outcomes = self.story.nodes[place].outcomes if self.story.nodes else ("completed",)
        told = self._told[job.job] = self._told.get(job.job, -1) + 1
        outcome = outcomes[min(told, len(outcomes) - 1)]
        if outcome == "network":
            return Finished(job.job, job.attempt, "failed", failure="network")
        return Finished(job.job, job.attempt, outcome)  # type: ignore[arg-type]

    async def _stop(self, agent: Agent, stops: Any) -> None:
        if stops:
            ended = tuple(Finished(s.job, s.attempt, "canceled") for s in stops)
            await agent.sync(finished=ended)

    async def _command(self, name: str) -> None:
        engine = self.rig.engine
        try:
            if name == "cancel":
                await engine.workflows.cancel(self.workflow)
            elif name == "retry":
                await engine.workflows.retry(self.workflow)
            elif name == "cancel_one" and self.ids:
                await engine.jobs.cancel([self.ids[self.story.shuffle % len(self.ids)]])
            elif name == "retry_one" and self.ids:
                await engine.jobs.retry(self.ids[self.story.shuffle % len(self.ids)])
            elif name == "join":
                await engine.submit([JobSpec(task="shell", workflow=self.workflow)])
            elif name == "crash":
                await self.rig.restart()
        except WindlassError:
            return  # refused: it has ended, or is ending

    async def _go_on(self, number: int, worker: int) -> bool:
        """Let time pass and operators accept; whether there may be something left to do."""
        # Too many failures of the network make a worker bad.
        await self.rig.engine.workers.set_status(worker, WorkerStatus.ONLINE)
        snapshot = await self.rig.snapshot()
        for wait in snapshot.waits:
            if wait.manual == 1:
                await self.rig.engine.jobs.unblock(wait.job)
        await self.rig.advance(MINUTE)
        await self.rig.cleanup()
        row = (await self.rig.store.read(lambda tx: tx.workflows.read([self.workflow])))[
            self.workflow
        ]
        ahead = any(at > number for at in self.story.commands)
        return ahead or WorkflowState(row.state) not in ENDED

    async def check(self) -> None:
        store = self.rig.store
        row = (await store.read(lambda tx: tx.workflows.read([self.workflow])))[self.workflow]
        assert WorkflowState(row.state) in ENDED
        assert row.counts == await store.read(lambda tx: tx.workflows.recount(self.workflow))
        joins: dict[int, int] = {}
        for event in await self.rig.events():
            if event.kind == EventKind.JOB and (event.source, event.to) == (BLOCKED, QUEUED):
                joins[event.job] = joins.get(event.job, 0) + 1
        retried = "retry_one" in self.story.commands.values()
        retried |= "retry" in self.story.commands.values()
        # A job waits again, and joins again, only when what it waited for was superseded.
        assert retried or all(times == 1 for times in joins.values())
        assert not (await self.rig.snapshot()).cascades


def tell(rigs: Rigs, kind: str, story: Story) -> None:
    with rigs.open(kind) as rig:
        run = Run(rig, story)
        rig.run(run.play())
        rig.run(run.check())


@settings(max_examples=60, suppress_health_check=list(HealthCheck), deadline=None)
@given(story=stories())
def test_every_workflow_ends_in_memory(rigs: Rigs, story: Story) -> None:
    tell(rigs, "memory", story)


@settings(max_examples=40, suppress_health_check=list(HealthCheck), deadline=None)
@given(story=stories())
def test_every_workflow_ends_on_sqlite(rigs: Rigs, story: Story) -> None:
    tell(rigs, "sqlite", story)


@settings(max_examples=15, suppress_health_check=list(HealthCheck), deadline=None)
@given(story=stories())
def test_every_workflow_ends_on_postgres(rigs: Rigs, story: Story) -> None:
    tell(rigs, "postgres", story)
