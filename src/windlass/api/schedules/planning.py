"""Templates and schedules, with the rights of one caller."""

from typing import Final

from windlass.api.parse import namespace_of
from windlass.api.rights import Rights
from windlass.api.schedules.render import (
    reference,
    show_reaction,
    show_run,
    show_schedule,
    show_template,
    wanted_of,
)
from windlass.domain.access.rights import Action, Identity, sees
from windlass.domain.job.forms import canonical_window
from windlass.domain.schedules import TemplateRow
from windlass.engine.schedules.planning import PlanRequest
from windlass.engine.schedules.reactions import Reactions
from windlass.engine.schedules.schedules import Schedules
from windlass.engine.schedules.templates import Templates
from windlass.ports.loop_time import aside, give_way_if_long
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

VALUE_BYTES: Final = 10  # of a description, about


class EnginePlanning:
    """Implements the client's `Planning`; shows only what the caller may see."""

    def __init__(
        self,
        templates: Templates,
        schedules: Schedules,
        reactions: Reactions,
        rights: Rights,
        who: Identity,
    ) -> None:
        self._templates = templates
        self._schedules = schedules
        self._reactions = reactions
        self._rights = rights
        self._who = who

    async def put_template(
        self, name: str, request: TemplateRequest, namespace: str | None = None
    ) -> TemplatePut:
        place = self._in(namespace, Action.CHANGE_PLANS)
        done = await self._templates.put(place, name, request.body, self._who.name)
        return TemplatePut(name=name, namespace=place, version=done.version, applied=done.applied)

    async def templates(self, namespace: str | None = None) -> list[Template]:
        rows = await self._templates.all(self._asked(namespace))
        return [
            await _shown(row) for row in rows if sees(self._who, row.namespace, Action.READ_PLANS)
        ]

    async def template(self, name: str, version: int = 0, namespace: str | None = None) -> Template:
        found = await self._templates.find(
            self._in(namespace, Action.READ_PLANS), reference(name, version)
        )
        return await _shown(found)

    async def start_template(
        self, name: str, request: StartRequest, namespace: str | None = None
    ) -> StartReply:
        self._rights.check_priority(request.priority, self._who, "priority")
        order = PlanRequest(
            name=name,
            namespace=self._in(namespace, Action.SUBMIT_JOBS),
            actor=self._who.name,
            parameters=request.parameters,
            priority=request.priority,
            key=request.key,
            key_for=canonical_window(request.key_for, request.key, "key_for"),
        )
        done = await self._templates.start(
            reference(name, request.version), order, request.submission_key
        )
        return StartReply(
            workflow=done.workflow,
            template=done.template,
            ids=list(done.ids),
            applied=done.applied,
        )

    async def remove_template(self, name: str, namespace: str | None = None) -> bool:
        return await self._templates.remove(
            self._in(namespace, Action.CHANGE_PLANS), name, self._who.name
        )

    async def put_schedule(
        self, name: str, request: ScheduleRequest, namespace: str | None = None
    ) -> SchedulePut:
        self._rights.check_priority(request.priority, self._who, "priority")
        wanted = wanted_of(name, self._in(namespace, Action.CHANGE_PLANS), request)
        row, applied = await self._schedules.put(wanted, self._who.name)
        return SchedulePut(applied=applied, schedule=show_schedule(row))

    async def schedules(self, namespace: str | None = None) -> list[Schedule]:
        rows = await self._schedules.all(self._asked(namespace))
        return [
            show_schedule(row) for row in rows if sees(self._who, row.namespace, Action.READ_PLANS)
        ]

    async def schedule(self, name: str, namespace: str | None = None) -> Schedule:
        seen = await self._schedules.show(self._in(namespace, Action.READ_PLANS), name)
        runs = [show_run(run, seen.workflows.get(run.workflow or 0)) for run in seen.runs]
        return show_schedule(seen.row, runs)

    async def pause_schedule(
        self, name: str, paused: bool = True, namespace: str | None = None
    ) -> bool:
        place = self._in(namespace, Action.CHANGE_PLANS)
        return await self._schedules.set_paused(place, name, paused, self._who.name)

    async def run_schedule(self, name: str, namespace: str | None = None) -> ScheduleRun:
        return show_run(
            await self._schedules.run_now(
                self._in(namespace, Action.CHANGE_PLANS), name, self._who.name
            )
        )

    async def remove_schedule(self, name: str, namespace: str | None = None) -> bool:
        return await self._schedules.remove(
            self._in(namespace, Action.CHANGE_PLANS), name, self._who.name
        )

    async def reactions(self, workflow: int) -> list[ReactionInfo]:
        return [show_reaction(row) for row in await self._reactions.of_workflow(workflow)]

    def _in(self, namespace: str | None, action: Action) -> str:
        return namespace_of(namespace, self._who, action)

    def _asked(self, namespace: str | None) -> str | None:
        return None if namespace is None else self._in(namespace, Action.READ_PLANS)


async def _shown(row: TemplateRow) -> Template:
    """Renders a template while others have their turn."""
    await give_way_if_long()
    return await aside(len(row.body) // VALUE_BYTES, lambda: show_template(row))
