"""Templates and schedules of an embedded engine, which the first call starts."""

from collections.abc import Awaitable, Callable

from windlass.api.schedules.planning import EnginePlanning
from windlass.wire.schedules import (
    ReactionInfo,
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

Opened = Callable[[], Awaitable[EnginePlanning]]


class EmbeddedPlanning:
    """Implements the client's `Planning`."""

    def __init__(self, opened: Opened) -> None:
        self._opened = opened

    async def put_template(
        self, name: str, request: TemplateRequest, namespace: str | None = None
    ) -> TemplatePut:
        return await (await self._opened()).put_template(name, request, namespace)

    async def templates(self, namespace: str | None = None) -> list[Template]:
        return await (await self._opened()).templates(namespace)

    async def template(self, name: str, version: int = 0, namespace: str | None = None) -> Template:
        return await (await self._opened()).template(name, version, namespace)

    async def start_template(
        self, name: str, request: StartRequest, namespace: str | None = None
    ) -> StartReply:
        return await (await self._opened()).start_template(name, request, namespace)

    async def remove_template(self, name: str, namespace: str | None = None) -> bool:
        return await (await self._opened()).remove_template(name, namespace)

    async def put_schedule(
        self, name: str, request: ScheduleRequest, namespace: str | None = None
    ) -> SchedulePut:
        return await (await self._opened()).put_schedule(name, request, namespace)

    async def schedules(self, namespace: str | None = None) -> list[Schedule]:
        return await (await self._opened()).schedules(namespace)

    async def schedule(self, name: str, namespace: str | None = None) -> Schedule:
        return await (await self._opened()).schedule(name, namespace)

    async def pause_schedule(
        self, name: str, paused: bool = True, namespace: str | None = None
    ) -> bool:
        return await (await self._opened()).pause_schedule(name, paused, namespace)

    async def run_schedule(self, name: str, namespace: str | None = None) -> ScheduleRun:
        return await (await self._opened()).run_schedule(name, namespace)

    async def remove_schedule(self, name: str, namespace: str | None = None) -> bool:
        return await (await self._opened()).remove_schedule(name, namespace)

    async def reactions(self, workflow: int) -> list[ReactionInfo]:
        return await (await self._opened()).reactions(workflow)
