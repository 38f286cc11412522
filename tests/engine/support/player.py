"""Plays random moves on one rig and tells what came of each, in a form that compares."""

from typing import Any

import msgspec

from tests.engine.support.agent import Agent
from tests.engine.support.moves import (
    METADATA,
    WORKERS,
    Advance,
    Command,
    Loop,
    Move,
    Report,
    Submit,
    Sync,
)
from tests.engine.support.rig import Rig
from tests.support.specs import spec_of
from windlass.domain.job.forms import Concurrency
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.workflow_state import is_failing
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import Event
from windlass.domain.values.errors import WindlassError
from windlass.engine.submit.submission import WorkflowSpec
from windlass.messages.sync import Assignment, Finished, Released, Started, SyncReply

STATUSES = {
    "drain": WorkerStatus.DRAINING,
    "disable": WorkerStatus.DISABLED,
    "enable": WorkerStatus.ONLINE,
}


class Player:
    """One rig with its jobs, workers and what they hold, by position."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig
        self._jobs: list[int] = []
        self._flows: list[int] = []
        self._agents: dict[str, Agent] = {}
        self._held: dict[str, list[Assignment]] = {}

    async def play(self, move: Move) -> object:
        """Do it, let what follows from it happen, and tell the outcome."""
        try:
            outcome = await self._play(move)
        except WindlassError as error:
            outcome = (error.code, error.message)
        await self._rig.engine.settled()
        return outcome

    async def outcome(self) -> object:
        """What the store holds and has logged in the end."""
        events: list[Event] = await self._rig.events()
        log = [event._replace(seq=number) for number, event in enumerate(events)]
        return await self._rig.snapshot(), log, await self._rig.engine.metrics()

    async def _play(self, move: Move) -> object:
        if isinstance(move, Submit):
            return await self._submit(move)
        if isinstance(move, Sync):
            return await self._sync(move)
        if isinstance(move, Advance):
            await self._rig.advance(move.ms)
            return None
        if isinstance(move, Loop):
            return await getattr(self._rig, move.name)()
        return await self._command(move)

    async def _submit(self, move: Submit) -> object:
        specs = [self._spec(fields) for fields in move.jobs]
        group = None if move.workflow is None else WorkflowSpec(name="w", **move.workflow)
        if move.joins is not None and self._flows:
            flow = self._flows[move.joins % len(self._flows)]
            if not await self._takes_jobs(flow):
                return None  # numbers of what is refused are lost on one store only
            specs = [msgspec.structs.replace(spec, workflow=flow, key=None) for spec in specs]
        submitted = await self._rig.engine.submit(specs, group)
        self._jobs += submitted.ids
        if submitted.workflow:
            self._flows.append(submitted.workflow)
        return submitted

    async def _takes_jobs(self, flow: int) -> bool:
        row = (await self._rig.store.read(lambda tx: tx.workflows.read([flow]))).get(flow)
        if row is None:  # retention has removed it
            return False
        return row.state in (1, 2) and not is_failing(row.flags, row.counts)

    def _spec(self, fields: dict[str, Any]) -> JobSpec:
        if "key" in fields:  # one key, one body
            return JobSpec(task="shell", key=fields["key"])
        chosen = dict(fields)
        for name in ("after", "after_any"):
            if name in chosen:
                chosen[name] = tuple(self._job(n) for n in chosen[name]) if self._jobs else ()
        if "not_before" in chosen:
            chosen["not_before"] += self._rig.now
        if chosen.get("concurrency"):
            key, most = chosen["concurrency"]
            chosen["concurrency"] = Concurrency(key=key, max=most)
        return spec_of(**chosen)

    def _job(self, position: int) -> int:
        return self._jobs[position % len(self._jobs)] if self._jobs else 1

    async def _agent(self, position: int) -> Agent:
        name = WORKERS[position]
        if name not in self._agents:
            self._agents[name] = Agent(self._rig.engine, name)
            await self._agents[name].enrol(slots=3, metadata=METADATA[position])
            self._held[name] = []
        return self._agents[name]

    async def _sync(self, move: Sync) -> object:
        agent = await self._agent(move.worker)
        held = self._held[agent.name]
        fields: dict[str, Any] = {"want": move.want, "prefetch": move.prefetch}
        fields |= _spoken(held, move.reports)
        if move.audit:
            fields["held"] = tuple(Started(job.job, job.attempt) for job in held[:1])
        received = agent.received
        reply = await agent.sync(**fields)
        if move.reply_is_lost:
            agent.received = received
        else:
            held += [job for job in reply.jobs if job not in held]
        return _plain(reply)

    async def _on_flow(self, move: Command) -> object:
        engine = self._rig.engine
        flow = self._flows[move.position % len(self._flows)] if self._flows else 1
        if move.name == "cancel_flow":
            return await engine.workflows.cancel(flow, actor="ann")
        retried = await engine.workflows.retry(flow, failed=move.name == "retry_flow")
        if retried.id not in self._flows:
            self._flows.append(retried.id)
        return retried

    async def _command(self, move: Command) -> object:
        engine, job = self._rig.engine, self._job(move.position)
        if move.name.endswith("_flow"):
            return await self._on_flow(move)
        if move.name == "cancel":
            return await engine.jobs.cancel([job])
        if move.name == "retry":
            retried = await engine.jobs.retry(job)
            self._jobs.append(retried.id)
            return retried
        if move.name in ("unblock", "reject"):
            return await engine.jobs.unblock(job, accept=move.name == "unblock")
        if move.name == "adjust":
            return await engine.jobs.adjust_priority(job, move.value)
        if move.name in ("pause", "resume"):
            return await getattr(engine.queues, move.name)(move.value)
        return await self._on_worker(move, await self._agent(move.position))

    async def _on_worker(self, move: Command, agent: Agent) -> object:
        engine = self._rig.engine
        if move.name in STATUSES:
            return await engine.workers.set_status(agent.id, STATUSES[move.name])
        if move.name in ("remove", "force"):
            return await engine.workers.remove(agent.id, force=move.name == "force")
        if move.name == "activity":
            held = self._held[agent.name]
            return await agent.show_activity(held[move.value % len(held)]) if held else None
        takeover = move.name == "takeover"
        await agent.enrol(slots=3, metadata=METADATA[move.value], takeover=takeover)
        self._held[agent.name] = []
        return agent.id, agent.incarnation


def _spoken(held: list[Assignment], reports: list[Report]) -> dict[str, Any]:
    """The reports of a sync; what was told is not held any more, except when it started."""
    said: dict[str, list[object]] = {"started": [], "finished": [], "released": []}
    for position, kind, failure in reports:
        if not held:
            break
        job = held[position % len(held)]
        if kind == "started":
            said["started"].append(Started(job.job, job.attempt))
        elif kind in ("released", "refused"):
            reason = "no disk" if kind == "refused" else None
            said["released"].append(Released(job.job, job.attempt, reason))
        elif kind == "unable":
            said["released"].append(Released(job.job, job.attempt, "no code", unable=True))
        elif kind == "misfit":
            wrong = Finished(job.job, job.attempt, "failed", failure="configuration", misfit=True)
            said["finished"].append(wrong)
        else:
            text = None if failure else "connection refused"
            said["finished"].append(
                Finished(job.job, job.attempt, kind, failure=failure, message=text)  # type: ignore[arg-type]
            )
    return {name: tuple(items) for name, items in said.items()}


def _plain(reply: SyncReply) -> object:
    jobs = [(j.job, j.attempt, j.lease, j.state, bytes(j.spec)) for j in reply.jobs]
    return jobs, reply.cancel, reply.lost, reply.drain, reply.applied
