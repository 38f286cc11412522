"""Templates and schedules, as clients handle them."""

from collections.abc import Awaitable, Callable
from functools import partial

import msgspec

from windlass.client.calls import Calls
from windlass.domain.values.errors import InvalidInput
from windlass.messages.schedules import (
    ReactionInfo,
    ReactionList,
    Schedule,
    ScheduleList,
    SchedulePut,
    ScheduleRequest,
    ScheduleRun,
    StartReply,
    StartRequest,
    Template,
    TemplateList,
    TemplatePut,
    TemplateRequest,
)
from windlass.messages.workers import Changed


class Planning:
    """Without a namespace, the token's own is meant; lists show all that it sees."""

    def __init__(
        self,
        transport: Calls,
        send: Callable[[Callable[..., Awaitable[StartReply]]], Awaitable[StartReply]],
        fresh_key: Callable[[], str],
    ) -> None:
        """`send` makes a call that has a key, within the time of submissions."""
        self._call = transport.call
        self._may_lose_answers = transport.may_lose_answers
        self._send = send
        self._fresh_key = fresh_key

    async def put_template(
        self, name: str, request: TemplateRequest, namespace: str | None = None
    ) -> TemplatePut:
        path = f"/api/v1/templates/{name}"
        return await self._call("PUT", path, TemplatePut, request, query=_in(namespace))

    async def templates(self, namespace: str | None = None) -> list[Template]:
        found = await self._call("GET", "/api/v1/templates", TemplateList, query=_in(namespace))
        return found.templates

    async def template(self, name: str, version: int = 0, namespace: str | None = None) -> Template:
        query = {**_in(namespace), "version": version or None}
        return await self._call("GET", f"/api/v1/templates/{name}", Template, query=query)

    async def start_template(
        self, name: str, request: StartRequest, namespace: str | None = None
    ) -> StartReply:
        """Sends a start with a key, so that it can be repeated if no answer came."""
        path = f"/api/v1/templates/{name}/start"
        if request.submission_key is None and self._may_lose_answers:
            request = msgspec.structs.replace(request, submission_key=self._fresh_key())
        query = _in(namespace)
        return await self._send(partial(self._call, "POST", path, StartReply, request, query=query))

    async def remove_template(self, name: str, namespace: str | None = None) -> bool:
        path = f"/api/v1/templates/{name}"
        return (await self._call("DELETE", path, Changed, query=_in(namespace))).applied

    async def put_schedule(
        self, name: str, request: ScheduleRequest, namespace: str | None = None
    ) -> SchedulePut:
        path = f"/api/v1/schedules/{name}"
        return await self._call("PUT", path, SchedulePut, request, query=_in(namespace))

    async def schedules(self, namespace: str | None = None) -> list[Schedule]:
        found = await self._call("GET", "/api/v1/schedules", ScheduleList, query=_in(namespace))
        return found.schedules

    async def schedule(self, name: str, namespace: str | None = None) -> Schedule:
        path = f"/api/v1/schedules/{name}"
        return await self._call("GET", path, Schedule, query=_in(namespace))

    async def pause_schedule(
        self, name: str, paused: bool = True, namespace: str | None = None
    ) -> bool:
        """Pauses a schedule, or resumes it with `paused=False`; returns whether that was new."""
        path = f"/api/v1/schedules/{name}/{'pause' if paused else 'resume'}"
        return (await self._call("POST", path, Changed, query=_in(namespace))).applied

    async def run_schedule(self, name: str, namespace: str | None = None) -> ScheduleRun:
        path = f"/api/v1/schedules/{name}/run"
        return await self._call("POST", path, ScheduleRun, query=_in(namespace))

    async def remove_schedule(self, name: str, namespace: str | None = None) -> bool:
        path = f"/api/v1/schedules/{name}"
        return (await self._call("DELETE", path, Changed, query=_in(namespace))).applied

    async def reactions(self, workflow: int) -> list[ReactionInfo]:
        """Returns the reactions to a workflow's end, done and planned."""
        path = f"/api/v1/workflows/{workflow}/reactions"
        return (await self._call("GET", path, ReactionList)).reactions


def split_reference(template: str) -> tuple[str, int]:
    """Splits a template reference into name and version; version 0 is the newest."""
    name, at, version = template.partition("@")
    if at and not (version.isascii() and version.isdigit()):
        raise InvalidInput("template", "name or name@version, such as nightly@3", template)
    return name, int(version or 0)


def _in(namespace: str | None) -> dict[str, object]:
    return {"namespace": namespace}
