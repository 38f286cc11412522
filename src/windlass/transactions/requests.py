"""Checks a submission as a server does, before it is written into a user's transaction."""

from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import msgspec

from windlass.domain.access.policy import check_priority
from windlass.domain.access.rights import Identity, Role
from windlass.domain.config import Config
from windlass.domain.job.dependency_graph import find_names
from windlass.domain.job.job import JobSpec
from windlass.domain.job.validation import Validator, check_workflow_options
from windlass.domain.rows.records import MAX_JOBS
from windlass.domain.tasks.built_in import KINDS
from windlass.domain.tasks.references import RESULT, references_in, results_in
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.domain.values.json_values import check_depth
from windlass.messages.jobs import NewWorkflow, SubmitRequest
from windlass.messages.reactions import parse_reactions
from windlass.tasks.local_files import refuse_files
from windlass.tasks.submitting import with_ids

ANY_NAMESPACE = "*"
NO_FILES = (
    "without local files, which a transaction cannot send; upload them first with `file = "
    "client.upload(path)`, and pass `file`"
)
NO_LARGE = (
    "at most 1 MiB in a transaction, which cannot send files; upload a file first with `file "
    "= client.upload(path)`, and pass `file`"
)
SUBMITTER = Identity(0, "", Role.SUBMITTER)


class Reference(msgspec.Struct, frozen=True):
    """A job or workflow that a job names by its id, and the namespace it must be in."""

    field: str
    id: int
    namespace: str | None


class Key(msgspec.Struct, frozen=True):
    """The key of a job. Jobs with the same key must have the same task and arguments."""

    field: str
    namespace: str | None
    key: str
    task: str
    args: Any


class Facts(msgspec.Struct, frozen=True):
    """What the database checks about a submission without parsing its jobs."""

    count: int
    namespaces: list[str]
    jobs: list[Reference]
    workflows: list[Reference]
    keys: list[Key] = []


class Request(NamedTuple):
    """A submission that passed every check that needs no database."""

    body: str  # a `SubmitRequest` as JSON
    facts: Facts
    specs: Sequence[JobSpec]

    def ids(self, taken: Sequence[int]) -> list[int]:
        """Returns the id of each job; ids ascend in the order of dependencies."""
        return list(find_names(self.specs, taken).ids)


@cache
def _validator() -> Validator:
    return Validator(Config(), {kind.name: kind for kind in KINDS})


def check_request(jobs: Sequence[JobSpec], workflow: NewWorkflow | None = None) -> Request:
    """Returns the submission; raises `InvalidInput` for anything that a server would refuse."""
    if not 1 <= len(jobs) <= MAX_JOBS:
        raise InvalidInput("jobs", f"from 1 to {MAX_JOBS} in one submission", len(jobs))
    refuse_files(jobs, NO_FILES)
    own = [with_ids(job) for job in jobs]
    for number, job in enumerate(own):
        check_depth(job, f"jobs[{number}]")
        if job.submitted_by is not None:
            field = f"jobs[{number}].submitted_by"
            raise InvalidInput(field, "left to the server", job.submitted_by)
        if job.priority is not None:
            check_priority(job.priority, SUBMITTER, Config().access, f"jobs[{number}].priority")
        size = len(msgspec.json.encode(job.args))
        if size > Config().payload_limit:
            raise InvalidInput(f"jobs[{number}].args", NO_LARGE, f"{size} bytes")
    # With the jobs whose results they use, which they wait for.
    waiting = [_validator().validate(job, f"jobs[{n}]").spec for n, job in enumerate(own)]
    find_names(waiting, range(1, len(own) + 1))
    if workflow is not None:
        _check_workflow(workflow, own)
    body = msgspec.json.encode(SubmitRequest(jobs=own, workflow=workflow))
    return Request(body.decode(), _facts(waiting, workflow), waiting)


def _check_workflow(workflow: NewWorkflow, jobs: Sequence[JobSpec]) -> None:
    namespace = workflow.namespace or "default"
    check_workflow_options(
        workflow.name, namespace, workflow.key, workflow.priority, workflow.labels
    )
    names = {job.name for job in jobs}
    for source in results_in(workflow.outputs, "workflow.outputs"):
        if source not in names:
            raise InvalidInput("workflow.outputs", "about jobs of the workflow, by name", source)
    for name in ("on_success", "on_failure", "on_end"):
        parse_reactions(getattr(workflow, name), f"workflow.{name}")
    for number, job in enumerate(jobs):
        if job.workflow is not None:
            field = f"jobs[{number}].workflow"
            raise InvalidInput(field, "unset in the submission of a workflow", job.workflow)
        if job.namespace not in (workflow.namespace, None):
            field = f"jobs[{number}].namespace"
            raise InvalidInput(field, f"the namespace of its workflow, {namespace}", job.namespace)


def _facts(jobs: Sequence[JobSpec], workflow: NewWorkflow | None) -> Facts:
    named: list[Reference] = []
    joined: list[Reference] = []
    spaces: set[str] = set()
    if workflow is not None and workflow.namespace is not None:
        spaces.add(workflow.namespace)
    for number, job in enumerate(jobs):
        if job.namespace is not None:
            spaces.add(job.namespace)
        for field, references in (("after", job.after), ("after_any", job.after_any)):
            path = f"jobs[{number}].{field}"
            named += [Reference(path, r, job.namespace) for r in references if isinstance(r, int)]
        if job.parent is not None:
            named.append(Reference(f"jobs[{number}].parent", job.parent, ANY_NAMESPACE))
        if job.workflow is not None:
            joined.append(Reference(f"jobs[{number}].workflow", job.workflow, job.namespace))
    return Facts(len(jobs), sorted(spaces), named, joined, list(_keys(jobs)))


def _keys(jobs: Sequence[JobSpec]) -> Iterator[Key]:
    """Yields the keys of jobs; raises `Conflict` for two different jobs with one key."""
    seen: dict[tuple[str | None, str], Key] = {}
    for number, job in enumerate(jobs):
        if job.key is None or any(references_in(job.args, RESULT)):
            continue  # Ids are filled into references later.
        key = Key(f"jobs[{number}].key", job.namespace, job.key, job.task, job.args)
        first = seen.setdefault((job.namespace, job.key), key)
        if (first.task, first.args) != (key.task, key.args):
            message = (
                f"{key.field} {job.key!r} is also the key of {first.field[:-4]}, which differs"
            )
            raise Conflict("key_conflict", message)
        yield key
