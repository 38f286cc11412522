"""Parses requests into what the engine takes."""

import msgspec

from windlass.api.errors import Forbidden
from windlass.api.workflows import WorkflowFilter, parse_states
from windlass.domain.access.roles import Identity
from windlass.domain.job.capability import parse_grace
from windlass.domain.job.job import Concurrency, JobSpec
from windlass.domain.lifecycle.aliases import parse_state
from windlass.domain.lifecycle.workflow_state import Details
from windlass.domain.matching.rates import Rate
from windlass.domain.rows.views import JobFilter
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import parse_duration_ms
from windlass.domain.values.times import parse_moment
from windlass.engine.submit.submission import WorkflowSpec
from windlass.wire.jobs import JobRequest, NewWorkflow, RateLimit
from windlass.wire.reactions import parse_reactions


def job_spec(request: JobRequest, who: Identity, field: str) -> JobSpec:
    """Parses a job; raises `Forbidden` if the caller does not see its namespace."""
    limit = request.concurrency
    return JobSpec(
        task=request.task,
        args=request.args,
        priority=request.priority,
        namespace=namespace_of(request.namespace, who),
        queue=request.queue,
        requires=tuple(request.requires),
        resources=request.resources or None,
        target=request.target,
        secrets=tuple(request.secrets),
        name=request.name,
        after=tuple(request.after),
        after_any=tuple(request.after_any),
        allow_failure=request.allow_failure,
        unblock=request.unblock,
        duration_ms=_duration(request.duration, f"{field}.duration"),
        timeout_ms=_duration(request.timeout, f"{field}.timeout"),
        idle_timeout_ms=_duration(request.idle_timeout, f"{field}.idle_timeout"),
        max_retries=request.retries,
        retry_on=tuple(request.retry_on),
        not_before=_moment(request.not_before, f"{field}.not_before"),
        prefers=tuple(request.prefers),
        apart=request.apart,
        rate=rate_of(request.rate, f"{field}.rate"),
        preemptible=request.preemptible,
        start_before=_moment(request.start_before, f"{field}.start_before"),
        finish_before=_moment(request.finish_before, f"{field}.finish_before"),
        capability_grace_ms=parse_grace(request.capability_grace, f"{field}.capability_grace"),
        concurrency=None if limit is None else Concurrency(limit.key, limit.max),
        key=request.key,
        labels=request.labels or None,
        parent=request.parent,
        workflow=request.workflow,
        submitted_by=who.name,
    )


def rate_of(asked: RateLimit | None, field: str) -> Rate | None:
    """Parses a rate limit."""
    if asked is None:
        return None
    return Rate(asked.key, asked.max, parse_duration_ms(asked.per, f"{field}.per"))


_WORDS = {
    "max_retries": "retries",
    "timeout_ms": "timeout",
    "idle_timeout_ms": "idle_timeout",
    "duration_ms": "duration",
    "capability_grace_ms": "capability_grace",
}


def in_words_of_wire(error: InvalidInput) -> InvalidInput:
    """Returns the same error with the field named as clients name it."""
    before, dot, last = error.field.rpartition(".")
    name = before + dot + _WORDS.get(last, last)
    return InvalidInput(name, error.expected, error.got, error.hint)


def workflow_spec(request: NewWorkflow | None, who: Identity) -> WorkflowSpec | None:
    """Parses the workflow that a submission creates."""
    if request is None:
        return None
    reactions = {
        name: msgspec.to_builtins(parse_reactions(getattr(request, name), f"workflow.{name}"))
        for name in ("on_success", "on_failure", "on_end")
    }
    return WorkflowSpec(
        name=request.name,
        namespace=namespace_of(request.namespace, who),
        priority=request.priority,
        key=request.key,
        fail_fast=request.fail_fast,
        details=Details(
            submitted_by=who.name,
            labels=request.labels,
            template=request.template,
            parameters=request.parameters,
            **reactions,
        ),
    )


def workflow_filter(
    who: Identity,
    *,
    state: list[str] | None,
    name: str | None,
    namespace: str | None,
    label: list[str] | None,
    key: str | None,
) -> WorkflowFilter:
    """Parses the filter of a list of workflows, limited to what the caller may see."""
    namespaces = who.namespaces or None
    if namespace is not None:
        namespaces = (namespace_of(namespace, who),)
    return WorkflowFilter(
        states=parse_states(state or ()),
        namespaces=namespaces,
        name=name,
        labels=tuple(_label(text) for text in label or ()),
        key=key,
    )


def job_filter(
    who: Identity,
    *,
    state: list[str] | None,
    queue: str | None,
    namespace: str | None,
    task: str | None,
    name: str | None,
    label: list[str] | None,
    workflow: int | None,
    submitted_by: str | None,
    key: str | None,
    dead: bool,
) -> JobFilter:
    """Parses the filter of a list of jobs, limited to what the caller may see."""
    states = sorted({found.code for text in state or () for found in parse_state(text)})
    namespaces = who.namespaces or None
    if namespace is not None:
        namespaces = (namespace_of(namespace, who),)
    return JobFilter(
        states=tuple(states),
        namespaces=namespaces,
        queue=queue,
        task=task,
        name=name,
        labels=tuple(_label(text) for text in label or ()),
        workflow=workflow or 0,
        submitted_by=submitted_by,
        key=key,
        dead=dead,
    )


def namespace_of(asked: str | None, who: Identity) -> str:
    """Returns the requested or default namespace; raises `Forbidden` if it is not visible."""
    namespace = who.own_namespace if asked is None else asked
    if not who.sees(namespace):
        raise Forbidden(f"this token does not see namespace {namespace}")
    return namespace


def _duration(value: float | str | None, field: str) -> int | None:
    return None if value is None else parse_duration_ms(value, field)


def _moment(value: str | None, field: str) -> int | None:
    return None if value is None else parse_moment(value, field)


def _label(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInput("label", "name=value", text)
    return name, value
