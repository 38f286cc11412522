"""Templates and schedules of an engine in the same process, which the first call starts."""

from collections.abc import Awaitable, Callable

from windlass.server.planning_desk import PlanningDesk
from windlass.wire.reactions import ReactionInfo
from windlass.wire.schedules import (
    Schedule,
    SchedulePut,
    ScheduleRequest,
    ScheduleRun,
    StartReply,
    StartRequest,
    Template,
    TemplatePut,
    TemplateRequest,
)

Desk = Callable[[], Awaitable[PlanningDesk]]


class EmbeddedPlanning:
    """Implements the client's `Planning`."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk

    async def put_template(
        self, name: str, request: TemplateRequest, namespace: str | None = None
    ) -> TemplatePut:
        return await (await self._desk()).put_template(name, request, namespace)

    async def templates(self, namespace: str | None = None) -> list[Template]:
        return await (await self._desk()).templates(namespace)

    async def template(self, name: str, version: int = 0, namespace: str | None = None) -> Template:
        return await (await self._desk()).template(name, version, namespace)

    async def start_template(
        self, name: str, request: StartRequest, namespace: str | None = None
    ) -> StartReply:
        return await (await self._desk()).start_template(name, request, namespace)

    async def remove_template(self, name: str, namespace: str | None = None) -> bool:
        return await (await self._desk()).remove_template(name, namespace)

    async def put_schedule(
        self, name: str, request: ScheduleRequest, namespace: str | None = None
    ) -> SchedulePut:
        return await (await self._desk()).put_schedule(name, request, namespace)

    async def schedules(self, namespace: str | None = None) -> list[Schedule]:
        return await (await self._desk()).schedules(namespace)

    async def schedule(self, name: str, namespace: str | None = None) -> Schedule:
        return await (await self._desk()).schedule(name, namespace)

    async def pause_schedule(
        self, name: str, paused: bool = True, namespace: str | None = None
    ) -> bool:
        return await (await self._desk()).pause_schedule(name, paused, namespace)

    async def run_schedule(self, name: str, namespace: str | None = None) -> ScheduleRun:
        return await (await self._desk()).run_schedule(name, namespace)

    async def remove_schedule(self, name: str, namespace: str | None = None) -> bool:
        return await (await self._desk()).remove_schedule(name, namespace)

    async def reactions(self, workflow: int) -> list[ReactionInfo]:
        return await (await self._desk()).reactions(workflow)
