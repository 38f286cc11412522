"""Simulated people and programs: they submit, cancel, retry, unblock, adjust and pause."""

from collections.abc import Callable
from typing import Any

from windlass.domain.job.forms import FOREVER, Concurrency, RateLimit, moment_ms
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import JobRecord
from windlass.domain.values.errors import (
    Conflict,
    NotFound,
    StoreUnavailable,
    Unreachable,
    WindlassError,
)
from windlass.domain.values.ids import JobId
from windlass.domain.values.quantities import format_moment
from windlass.engine.submit.submission import Submitted, WorkflowSpec
from windlass.messages.workers import QueueLimits
from windlass.simulator.jobs import SIGNALS
from windlass.simulator.network import Network
from windlass.simulator.server import Server, Stores
from windlass.simulator.world import World

QUEUES = ("default", "batch", "other")
TASKS = ("compile", "test")
DURATIONS_MS = ((20, 400), (500, 4_000), (2_000, 12_000), (5_000, 28_000))
PATIENCE_MS = 6_000
TRIES = 6
CONDITIONS = ("success()", "failure()", "always()")

# Refusals because the state has changed meanwhile; these are no defects.
EXPECTED = (Conflict, NotFound)


class Client:
    """One client with a program drawn from the seed."""

    def __init__(
        self, world: World, network: Network, servers: list[Server], stores: Stores, name: str,
        jobs: int, durable: float = 0.0,
    ) -> None:  # fmt: skip
        self.name = name
        self.acknowledged: list[int] = []
        self.workflows: list[int] = []
        self._world = world
        self._network = network
        self._servers = servers
        self._stores = stores
        self._left = jobs
        self._durable = durable  # the shares of its jobs with steps, and with conditions
        self._keys: dict[str, int] = {}
        self._keyed: dict[str, JobSpec] = {}
        self._numbered = 0

    async def run(self, until: float) -> None:
        """Submits everything and operates on it at random, until the given time."""
        actions: list[Callable[[], Any]] = [
            self._submit_batch, self._submit_workflow, self._submit_keyed, self._add_to_workflow,
            self._cancel, self._cancel, self._retry, self._retry, self._unblock, self._adjust,
            self._pause, self._limit, self._cancel_workflow, self._retry_workflow,
            self._retry_workflow,
        ]  # fmt: skip
        if self._durable:
            actions += [self.send] * 3
        while self._world.loop.time() < until:
            submitting = self._left > 0 and self._world.chance.random() < 0.6
            choices = actions[:4] if submitting else actions[4:]
            await self._world.chance.choice(choices)()
            await self._world.clock.sleep_ms(self._world.between(10, 1_500))
        while self._left > 0:
            await self._submit_batch()

    async def keep_retrying(self, until: float) -> None:
        """Soon retries by hand the jobs that ended badly."""
        while self._world.loop.time() < until:
            await self._retry()
            await self._world.clock.sleep_ms(self._world.between(50, 1_500))

    async def ask(self, request: Callable[[Any], Any]) -> Any:
        """Returns the answer or the error; None if nobody answered."""
        server = self._world.chance.choice(self._servers)
        try:
            return await self._network.ask(self.name, server, request, PATIENCE_MS)
        except Unreachable:
            return None
        except EXPECTED as error:
            return error
        except WindlassError as error:
            if error.code not in ("store_unavailable", "overloaded"):
                self._world.found("protocol", f"{self.name}: {error}")
            return None

    # Submitting

    async def _submit_batch(self) -> None:
        """Submits some jobs; half of the batches have a key and are repeated until acknowledged."""
        jobs = [self._spec() for _ in range(self._take(6))]
        if self._world.chance.random() < 0.5:
            await self._submit(jobs, None)
            return
        self._numbered += 1
        key = f"{self.name}-{self._numbered}"
        seen: tuple[int, ...] = ()
        for _ in range(TRIES):
            answer = await self._submit(jobs, None, key)
            if answer is not None:
                if seen and seen != answer.ids:
                    self._world.found("S2", f"submission {key} was told other jobs", seen[0])
                seen = answer.ids
                if self._world.chance.random() < 0.5:
                    return

    async def _submit_workflow(self) -> None:
        chance = self._world.chance
        specs: list[JobSpec] = []
        names: list[str] = []
        for _ in range(self._take(8)):
            self._numbered += 1
            name = f"step-{self._numbered}"
            others = chance.sample(names, min(len(names), chance.randint(0, 3)))
            cut = chance.randint(0, len(others))
            specs.append(
                self._spec(
                    name=name, after=tuple(others[:cut]), after_any=tuple(others[cut:]),
                    allow_failure=chance.random() < 0.35, **self._condition(others),
                )
            )  # fmt: skip
            names.append(name)
        self._numbered += 1
        fail_fast = chance.random() < 0.3
        name = f"workflow-{self._numbered}"
        await self._submit(specs, WorkflowSpec(name=name, fail_fast=fail_fast))

    async def _add_to_workflow(self) -> None:
        """Adds jobs that depend on existing ones, some to a running workflow."""
        if not self.acknowledged:
            return
        chance = self._world.chance
        others = tuple(chance.choice(self.acknowledged) for _ in range(2))
        workflow = (
            chance.choice(self.workflows) if self.workflows and chance.random() < 0.5 else None
        )
        spec = self._spec(
            after=others[:1], after_any=others[1:], workflow=workflow,
            allow_failure=chance.random() < 0.2,
        )  # fmt: skip
        self._take(1)
        await self._submit([spec], None)

    async def _submit_keyed(self) -> None:
        """Submits one job with a key until it is acknowledged, then once more.

        Half of these jobs keep their key for ever. For the others, `verify` checks that only one
        open job has the key.
        """
        self._numbered += 1
        lasting = self._world.chance.random() < 0.5
        key = (
            f"{self.name}-{self._numbered}"
            if lasting
            else f"{self.name}-again-{self._numbered % 2}"
        )
        made = self._spec(key=key, key_for=FOREVER if lasting else None)
        spec = self._keyed.setdefault(key, made)
        self._take(1)
        for _ in range(TRIES):
            answer = await self._submit([spec], None)
            if answer is not None:
                job = answer.ids[0]
                first = self._keys.setdefault(key, job)
                if lasting and first != job and first not in await self._predecessors(job):
                    self._world.found("S2", f"key {key} named job {first} before", job)
                if self._world.chance.random() < 0.5:
                    return

    async def _predecessors(self, job: int) -> list[int]:
        """Returns the jobs that this one replaced."""
        rows = {row.facts.id: row.facts for row in await self._jobs()}
        chain: list[int] = []
        while job in rows and (before := rows[JobId(job)].supersedes):
            job = before
            chain.append(job)
        return chain

    async def _jobs(self) -> tuple[JobRecord, ...]:
        """Returns all jobs, read beside the servers; none while the store is closed."""
        try:
            return (await self._stores.view.snapshot()).jobs
        except StoreUnavailable:
            return ()

    async def _submit(
        self, jobs: list[JobSpec], workflow: WorkflowSpec | None, key: str | None = None
    ) -> Submitted | None:
        answer = await self.ask(lambda engine: engine.submit(jobs, workflow, key))
        if not isinstance(answer, Submitted):
            return None
        self.acknowledged += answer.ids
        if answer.workflow is not None:
            self.workflows.append(answer.workflow)
        return answer

    def _take(self, most: int) -> int:
        count = max(1, min(self._left, self._world.chance.randint(1, most)))
        self._left -= count
        return count

    def _spec(self, **ties: Any) -> JobSpec:
        chance = self._world.chance
        if chance.random() < 0.25:
            key = chance.choice(("licence", "board"))
            ties["concurrency"] = Concurrency(key, 1 if key == "licence" else chance.randint(1, 3))
        if chance.random() < 0.1 and "run_if" not in ties:
            ties["unblock"] = "manual"
        if chance.random() < 0.1:
            ties["not_before"] = self._in(self._world.between(0, 15_000))
        if chance.random() < 0.1:
            ties["timeout"] = self._world.between(500, 8_000) / 1000
        if chance.random() < 0.1:
            ties["retries"] = chance.randint(0, 1)
        if chance.random() < 0.3:
            ties["priority"] = chance.randint(-5, 5)
        if chance.random() < 0.15:
            ties["requires"] = ("gpu == true",)
        self._place(ties)
        self._limit_time(ties)
        args = {"ms": self._duration(), "poison": chance.random() < 0.02, **self._steps()}
        return JobSpec(task=chance.choice(TASKS), queue=chance.choice(QUEUES), args=args, **ties)

    def _steps(self) -> dict[str, list[str]]:
        """Returns steps for some jobs: stored results, sleeps and signals."""
        chance = self._world.chance
        if not self._durable or chance.random() >= self._durable:
            return {}
        kinds = (
            "call",
            f"sleep {self._world.between(0, 20_000)}",
            f"wait {chance.choice(SIGNALS)}",
        )
        return {"steps": [chance.choice(kinds) for _ in range(chance.randint(1, 4))]}

    def _condition(self, others: list[str]) -> dict[str, str]:
        """Returns a condition for some of the jobs that wait for others."""
        chance = self._world.chance
        if not self._durable or not others or chance.random() >= self._durable:
            return {}
        return {"run_if": chance.choice(CONDITIONS)}

    def _in(self, ms: int) -> str:
        """Returns the time `ms` from now."""
        return format_moment(self._world.clock.now_ms() + ms)

    def _place(self, ties: dict[str, Any]) -> None:
        """Adds placement options: some jobs restrict where they run."""
        chance = self._world.chance
        if chance.random() < 0.15:
            ties["resources"] = {"cpus": chance.randint(1, 2)}
        if chance.random() < 0.08:
            ties["apart"] = chance.choice(("disk", "port"))
        if chance.random() < 0.08:
            ties["rate"] = RateLimit("api", 4.0, chance.randint(1, 3))
        if chance.random() < 0.15:
            ties["preemptible"] = True

    def _limit_time(self, ties: dict[str, Any]) -> None:
        """Adds limits: some jobs expire, or match no worker."""
        chance, between = self._world.chance, self._world.between
        earliest = moment_ms(ties.get("not_before")) or self._world.clock.now_ms()
        if chance.random() < 0.08:
            earliest += between(500, 20_000)
            ties["start_before"] = format_moment(earliest)
        if chance.random() < 0.08:
            ties["finish_before"] = format_moment(earliest + between(500, 30_000))
        if chance.random() < 0.02:
            ties["requires"] = ("wings == true",)
            ties["capability_grace"] = chance.choice((0.0, 3.0))

    def _duration(self) -> int:
        low, high = self._world.chance.choice(DURATIONS_MS)
        return self._world.between(low, high)

    # Operating

    async def _some_job(self, *states: State | None) -> int:
        """Returns a job in one of these states (None: open), else any."""
        codes = [0 if state is None else state.code for state in states]
        fitting = [row.facts.id for row in await self._jobs() if row.facts.state in codes]
        known = fitting or self.acknowledged or [1]
        return self._world.chance.choice(known)

    async def send(self) -> None:
        """Sends a signal, until it is acknowledged."""
        name = self._world.chance.choice(SIGNALS)
        self._numbered += 1
        key = f"{self.name} {self._numbered}"
        for _ in range(TRIES):
            if await self.ask(
                lambda engine: engine.steps.send("default", name, f"{name} {key}", key, self.name)
            ):
                return

    async def _cancel(self) -> None:
        jobs = [await self._some_job(None) for _ in range(self._world.between(1, 2))]
        await self.ask(lambda engine: engine.jobs.cancel(jobs, "simulated cancel", self.name))

    async def _retry(self) -> None:
        job = await self._some_job(State.FAILED, State.CANCELED, State.ABORTED)
        answer = await self.ask(lambda engine: engine.jobs.retry(job, self.name))
        if answer is not None and not isinstance(answer, WindlassError):
            self.acknowledged.append(answer.id)

    async def _cancel_workflow(self) -> None:
        if self.workflows:
            workflow = self._world.chance.choice(self.workflows)
            await self.ask(
                lambda engine: engine.workflows.cancel(workflow, "simulated cancel", self.name)
            )

    async def _retry_workflow(self) -> None:
        """Usually retries the failed jobs, sometimes everything."""
        if not self.workflows:
            return
        workflow, failed = self._world.chance.choice(self.workflows), self._world.between(1, 8) > 1
        answer = await self.ask(lambda engine: engine.workflows.retry(workflow, failed, self.name))
        if answer is not None and not isinstance(answer, WindlassError):
            self.workflows.append(answer.id)

    async def _unblock(self) -> None:
        job, accept = await self._some_job(None), self._world.chance.random() < 0.8
        await self.ask(lambda engine: engine.jobs.unblock(job, accept, "simulated no", self.name))

    async def _adjust(self) -> None:
        job, adjustment = await self._some_job(None), self._world.between(-20, 20)
        await self.ask(lambda engine: engine.jobs.adjust_priority(job, adjustment, self.name))

    async def _limit(self) -> None:
        """Sets a queue limit if there is only one server: others would hear of it later."""
        queue, most = self._world.chance.choice(QUEUES), self._world.between(0, 3)
        limits = QueueLimits(
            max_running=most,
            max_per_worker=self._world.between(0, 2),
            preempts=self._world.chance.random() < 0.5,
        )
        if len(self._servers) == 1:
            await self.ask(lambda engine: engine.queues.set_limits(queue, limits, self.name))

    async def _pause(self) -> None:
        queue = self._world.chance.choice(QUEUES)
        await self.ask(lambda engine: engine.queues.pause(queue, self.name))
        await self._world.clock.sleep_ms(self._world.between(500, 10_000))
        await self.ask(lambda engine: engine.queues.resume(queue, self.name))
