"""Turns workflow descriptions and job requests into specs, for the engine's templates."""

from collections.abc import Mapping
from typing import Any

import msgspec

from windlass.domain.access.rights import Identity, Role
from windlass.domain.job.job import JobSpec
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput
from windlass.engine.schedules.templates import PlannedWorkflow, PlanRequest
from windlass.messages.jobs import NewWorkflow
from windlass.messages.reactions import parse_reactions
from windlass.operations.parse import job_spec, workflow_spec
from windlass.workflows.checking import check
from windlass.workflows.expansion import expand
from windlass.workflows.format import WRITTEN
from windlass.workflows.nodes import of_plain

OCCASIONS = ("on_success", "on_failure", "on_end")
PLACEHOLDER = "value-of-"
_PLACEHOLDERS: dict[str, Any] = {"integer": 1, "number": 1, "boolean": True}


class WirePlanner:
    """Implements `Planner`."""

    def check(self, description: Mapping[str, Any], namespace: str) -> None:
        """Refuses an invalid description, and one that cannot run with any parameters.

        Parameters without a default get placeholder values. Errors that such a value alone
        causes are left for the start of the template.
        """
        check(of_plain(description), WRITTEN, "")
        if description.get("namespace") not in (None, namespace):
            raise InvalidInput("namespace", f"that of the template, {namespace}", "another")
        for occasion in OCCASIONS:
            parse_reactions(description.get(occasion) or [], occasion)
        declared = description.get("parameters") or {}
        values = {n: _placeholder(n, of) for n, of in declared.items() if not _has_default(of)}
        order = PlanRequest(
            name="", namespace=namespace, actor="", description=description, parameters=values
        )
        try:
            self.plan(order)
        except InvalidInput as error:
            if not _is_about(error, values):
                raise

    def plan(self, order: PlanRequest) -> PlannedWorkflow:
        """Returns what the order submits, with the rights of its own namespace only."""
        if order.description is None:
            new = NewWorkflow(name=order.name)
            jobs = [_job(value, f"jobs[{n}]") for n, value in enumerate(order.jobs)]
        else:
            new, jobs = expand(order.description, order.parameters)
        who = Identity(0, order.actor, Role.ADMIN, (order.namespace,))
        workflow = workflow_spec(_finished(new, order), who)
        if workflow is None:
            raise InvalidInput("workflow", "given", "nothing")
        return PlannedWorkflow(
            workflow, [job_spec(job, who, f"jobs[{n}]") for n, job in enumerate(jobs)]
        )


def _finished(new: NewWorkflow, order: PlanRequest) -> NewWorkflow:
    """Returns the workflow with what the order adds to it."""
    changes: dict[str, Any] = {"template": order.template}
    if order.priority is not None:
        changes["priority"] = order.priority
    if order.key is not None:
        changes |= {"key": order.key, "key_for": order.key_for or new.key_for}
    return msgspec.structs.replace(new, labels={**new.labels, **order.labels}, **changes)


def _job(value: Mapping[str, Any], field: str) -> JobSpec:
    return convert(value, JobSpec, field)


def _placeholder(name: str, parameter: object) -> Any:
    """Returns a value that fits a declaration; text values are recognisable in errors."""
    declared = parameter if isinstance(parameter, Mapping) else {}
    choices = declared.get("choices")
    if choices:
        return choices[0]
    return _PLACEHOLDERS.get(str(declared.get("type")), f"{PLACEHOLDER}{name}")


def _is_about(error: InvalidInput, values: Mapping[str, Any]) -> bool:
    """Returns whether a placeholder may be what is wrong."""
    if PLACEHOLDER in str(error.got):
        return any(isinstance(value, str) for value in values.values())
    return any(error.got == value and not isinstance(value, str) for value in values.values())


def _has_default(parameter: object) -> bool:
    return isinstance(parameter, Mapping) and parameter.get("default") is not None
