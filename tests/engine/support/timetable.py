"""Templates, schedules and reactions over a rig's engine, and a receiver for webhooks."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from tests.engine.support.rig import Rig
from windlass.client.webhooks import HttpCourier
from windlass.domain.lifecycle.workflow_state import WorkflowState
from windlass.domain.schedules import MISSED, ReactionRow, RunRow, RunState, ScheduleRow
from windlass.domain.values.addresses import parse_networks
from windlass.domain.values.ids import WorkflowId
from windlass.domain.values.quantities import parse_moment
from windlass.engine.engine import Engine
from windlass.engine.loops import planning
from windlass.engine.loops.planning import ReactionsLoop, WebhooksLoop
from windlass.engine.schedules.reactions import Reactions
from windlass.engine.schedules.runs import RunTarget
from windlass.engine.schedules.schedules import ScheduleInput, Schedules
from windlass.engine.schedules.templates import PlanRequest, Templates
from windlass.operations.planner import WirePlanner

NAMESPACE = "default"
JOB = {"task": "shell", "args": {"argv": ["true"]}}
DESCRIPTION: Mapping[str, Any] = {"name": "nightly", "jobs": {"only": {"run": ["true"]}}}


class RigClock:
    """The rig's time."""

    def __init__(self, rig: Rig) -> None:
        self._rig = rig

    def now_ms(self) -> int:
        return self._rig.now

    async def sleep_ms(self, duration_ms: int) -> None:
        raise NotImplementedError


class Timetable:
    """What a server has beside its engine; `tick` is one round of the cron loop."""

    def __init__(self, rig: Rig, engine: Engine | None = None, networks: str = "") -> None:
        self.rig = rig
        self.engine = engine or rig.engine
        planner = WirePlanner()
        allowed = parse_networks([networks] if networks else [], "networks")
        self.courier = HttpCourier(RigClock(rig), 5_000, allowed)
        self.templates = Templates(self.engine, planner)
        self.schedules = Schedules(self.engine, planner)
        self.reactions = Reactions(self.engine, planner, self.courier)

    async def put(self, line: str | None, name: str = "nightly", **fields: Any) -> ScheduleRow:
        """Put a schedule of one job that does nothing, unless `fields` say otherwise."""
        given: dict[str, Any] = {} if "template" in fields else {"jobs": [JOB]}
        chosen = {n: fields.pop(n) for n in ("template", "parameters", "jobs") if n in fields}
        starts = RunTarget(**(given | chosen))
        wanted = ScheduleInput(
            NAMESPACE, name, line, None, "UTC", "skip", "last", 100, False, starts
        )
        row, _ = await self.schedules.put(wanted._replace(**fields), "ada")
        return row

    async def tick(self) -> planning.CronReport:
        return await planning.CronLoop(self.engine, self.schedules.runs).run_once(self.rig.now)

    async def react(self) -> int:
        """One round of follow-ups and retries; how many were tried."""
        loop = ReactionsLoop(self.engine, self.reactions)
        return (await loop.run_once(self.rig.now)).tried

    async def send(self) -> int:
        """One round of webhooks; how many were sent."""
        return (await WebhooksLoop(self.engine, self.reactions).run_once(self.rig.now)).tried

    async def go_to(self, moment: str) -> None:
        """Let time pass until then, with nobody there."""
        await self.rig.advance(parse_moment(moment, "moment") - self.rig.now)

    async def runs(self, name: str = "nightly") -> list[RunRow]:
        """The runs of a schedule, oldest first, without the slots that were missed."""
        return [run for run in await self._all_runs(name) if run.reason != MISSED]

    async def missed(self, name: str = "nightly") -> list[int | None]:
        """The first slots that were missed each time, oldest first."""
        return [run.slot for run in await self._all_runs(name) if run.reason == MISSED]

    async def _all_runs(self, name: str) -> list[RunRow]:
        return list(reversed((await self.schedules.show(NAMESPACE, name)).runs))

    async def states(self, name: str = "nightly") -> list[str]:
        return [RunState(run.state).name.lower() for run in await self.runs(name)]

    async def workflow(self, number: int) -> WorkflowState:
        rows = {row.id: row for row in (await self.rig.snapshot()).workflows}
        return WorkflowState(rows[WorkflowId(number)].state)

    async def reaction_rows(self) -> tuple[ReactionRow, ...]:
        return (await self.rig.snapshot()).reactions

    def order(self, **fields: Any) -> PlanRequest:
        """Someone starts something in the namespace of these tests."""
        return PlanRequest(**{"name": "x", "namespace": NAMESPACE, "actor": "ada", **fields})


class Receiver:
    """Takes webhooks and answers as it is told."""

    def __init__(self) -> None:
        self.status = 204
        self.headers: dict[str, str] = {}
        self.requests: list[tuple[dict[str, str], bytes]] = []
        self.url = ""

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = {n.lower(): v.strip() for n, _, v in (line.partition(":") for line in head[1:])}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.requests.append((headers, body))
        extra = "".join(f"{name}: {value}\r\n" for name, value in self.headers.items())
        writer.write(f"HTTP/1.1 {self.status} x\r\nContent-Length: 0\r\n{extra}\r\n".encode())
        await writer.drain()
        writer.close()


@asynccontextmanager
async def receiving() -> AsyncIterator[Receiver]:
    """A receiver on a free port of this machine."""
    receiver = Receiver()
    server = await asyncio.start_server(receiver.answer, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    async with server:
        yield receiver
