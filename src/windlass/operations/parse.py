"""Parses requests into what the engine takes."""

from collections.abc import Sized
from typing import Final

import msgspec

from windlass.domain.access.rights import Action, Identity, Resource
from windlass.domain.config import Config
from windlass.domain.job.forms import canonical_window
from windlass.domain.job.job import DEFAULT_NAMESPACE, JobSpec
from windlass.domain.lifecycle.failures import FAILURE_BY_NAME
from windlass.domain.lifecycle.states import parse_state
from windlass.domain.lifecycle.workflow_state import Details
from windlass.domain.rows.views import JobFilter, JobSort, Place
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import compile_pattern, did_you_mean
from windlass.domain.values.quantities import parse_duration_ms, parse_moment
from windlass.engine.submit.submission import WorkflowSpec
from windlass.engine.transaction.arguments import check_id
from windlass.messages.jobs import NewWorkflow, Where
from windlass.messages.reactions import parse_reactions
from windlass.operations.rights import authorize

TEXT_LIMIT: Final = 500  # characters that a list may search for
MAX_IDS: Final = 1_000  # jobs that a filter may name


def check_count(field: str, given: Sized, config: Config) -> None:
    """Raises `InvalidInput` for a request about too many jobs, before any of the work."""
    if len(given) > config.submit_limit:
        raise InvalidInput(field, f"at most {config.submit_limit}", len(given))


def job_spec(job: JobSpec, who: Identity, field: str) -> JobSpec:
    """Returns the job with its submitter; raises `Forbidden` if they do not see its namespace."""
    if job.submitted_by is not None:
        raise InvalidInput(f"{field}.submitted_by", "left to the server", job.submitted_by)
    # Both are looked up before the whole job is validated.
    if job.parent is not None:
        check_id(f"{field}.parent", job.parent)
    if job.workflow is not None:
        check_id(f"{field}.workflow", job.workflow)
    namespace = namespace_of(job.namespace, who, Action.SUBMIT_JOBS)
    own = None if namespace == DEFAULT_NAMESPACE else namespace
    return msgspec.structs.replace(job, namespace=own, submitted_by=who.name)


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
        namespace=namespace_of(request.namespace, who, Action.SUBMIT_JOBS),
        priority=request.priority,
        key=request.key,
        fail_fast=request.fail_fast,
        details=Details(
            submitted_by=who.name,
            labels=request.labels,
            template=request.template,
            parameters=request.parameters,
            outputs=request.outputs,
            key_for=canonical_window(request.key_for, request.key, "workflow.key_for"),
            **reactions,
        ),
    )


def search_text(text: str | None) -> str | None:
    """Returns a text to search for; raises `InvalidInput` if it is too long."""
    if text is not None and len(text) > TEXT_LIMIT:
        raise InvalidInput("text", f"at most {TEXT_LIMIT} characters", len(text))
    return text


def job_filter(who: Identity, where: Where, key: str | None = None) -> JobFilter:
    """Parses the filter of a list of jobs, limited to what the caller may see."""
    if where.regex:
        compile_pattern(where.regex)
    if len(where.id) > MAX_IDS:
        raise InvalidInput("id", f"at most {MAX_IDS:,} jobs", len(where.id))
    states = sorted({found.code for text in where.state for found in parse_state(text)})
    namespaces = who.namespaces or None
    if where.namespace is not None:
        namespaces = (namespace_of(where.namespace, who),)
    return JobFilter(
        ids=tuple(sorted(set(where.id))),
        states=tuple(states),
        namespaces=namespaces,
        queue=where.queue,
        task=where.task,
        name=where.name,
        labels=tuple(parse_label(text) for text in where.label),
        workflow=where.workflow,
        submitted_by=where.submitted_by,
        key=key,
        dead=where.dead,
        failures=tuple(sorted({_failure(given) for given in where.failure})),
        text=search_text(where.text) or None,
        pattern=where.regex or None,
        created_from=_moment(where.created_from, "created_from"),
        created_to=_moment(where.created_to, "created_to"),
        finished_from=_moment(where.finished_from, "finished_from"),
        finished_to=_moment(where.finished_to, "finished_to"),
    )


def _failure(given: str) -> int:
    found = FAILURE_BY_NAME.get(given)
    if found is None:
        hint = did_you_mean(given, FAILURE_BY_NAME)
        raise InvalidInput("failure", f"one of {', '.join(FAILURE_BY_NAME)}", given, hint)
    return found.code


def _moment(given: str | None, field: str) -> int | None:
    return parse_moment(given, field) if given else None


def moment_since(text: str, now: int, field: str = "since") -> int:
    """Returns a time that was given as such, or as how long ago it was."""
    try:
        return now - parse_duration_ms(text, field)
    except InvalidInput:
        pass
    try:
        return parse_moment(text, field)
    except InvalidInput as error:
        raise InvalidInput(field, f"a duration such as 10m, or {error.expected}", text) from None


def namespace_of(asked: str | None, who: Identity, action: Action = Action.READ_JOBS) -> str:
    """Returns the requested or default namespace; raises `Forbidden` if it is not the caller's."""
    namespace = who.own_namespace if asked is None else asked
    if who.namespaces:  # Other tokens were asked for their role when the request came.
        authorize(who, action, Resource(namespace))
    return namespace


def parse_label(text: str) -> tuple[str, str]:
    """Returns the name and the value of a label."""
    name, separator, value = text.partition("=")
    if not separator or not name:
        raise InvalidInput("label", "name=value", text)
    return name, value


def parse_sort(given: str | None) -> JobSort:
    """Returns the order of a list of jobs."""
    try:
        return JobSort(given or JobSort.NEWEST)
    except ValueError:
        hint = "a list in another order would read every job"
        raise InvalidInput("sort", f"one of {', '.join(JobSort)}", given, hint) from None


def parse_place(given: str | None) -> Place | None:
    """Returns where a list continues, from the `next` of the page before."""
    if not given or given == "0":
        return None
    first, _, last = given.rpartition(":")
    try:
        place = int(first or "0"), int(last)
    except ValueError:
        place = 0, -1
    if place[1] < 0 or max(map(abs, place)) > 2**62 or not given.isascii():
        raise InvalidInput("after", "the `next` of another page", given)
    return place


def format_place(place: Place | None) -> str | None:
    """Returns a place as clients send it back."""
    if place is None:
        return None
    return f"{place[0]}:{place[1]}" if place[0] else str(place[1])
