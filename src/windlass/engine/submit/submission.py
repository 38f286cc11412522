"""What a caller submits and gets back, and repeated submissions.

A caller that got no answer cannot know whether its jobs were written. With a key for the whole
submission it can submit again and gets the same ids. The key is stored among the keys of jobs, with
a prefix that no job's own key can have, since those are printable.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from windlass.domain.job.job import JobSpec, encode_spec
from windlass.domain.job.validation import ValidatedJob, check_workflow_options, lasting_body
from windlass.domain.lifecycle.workflow_state import Details
from windlass.domain.rows.records import KeyRow, Spans
from windlass.domain.values.errors import Conflict, InvalidInput, WindlassError
from windlass.domain.values.json_values import NOT_JSON
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.loop_time import SMALL

ROW_BYTES = 1_000  # of a job; a larger one counts as several rows
MARK = "\x1f"  # prefix of a submission's key
OTHERS = (0, 0)  # in its spans: after this come jobs that already had the keys of its jobs


class WorkflowSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A group of jobs that finishes as one.

    `priority` is the base of jobs that have none. While a workflow holds this `key`, submitting
    again returns it.
    """

    name: str
    namespace: str = "default"
    priority: int | str | None = None
    key: str | None = None
    fail_fast: bool = False
    details: Details = Details()


def check_workflow(spec: WorkflowSpec, most_bytes: int) -> None:
    """Raises `InvalidInput` for a workflow that cannot be stored."""
    labels, key_for = spec.details.labels, spec.details.key_for
    check_workflow_options(spec.name, spec.namespace, spec.key, spec.priority, labels, key_for)
    try:
        body = msgspec.json.encode(spec.details)
    except NOT_JSON as error:
        raise InvalidInput("workflow", "JSON", str(error)) from None
    if len(body) > most_bytes:
        limit = f"described in at most {most_bytes} bytes as JSON"
        raise InvalidInput("workflow", limit, f"{len(body)} bytes")
    if b"\\u0000" in body:
        raise InvalidInput("workflow", "described without NUL characters", "a NUL character")


def with_digest(spec: WorkflowSpec, jobs: Sequence[JobSpec]) -> WorkflowSpec:
    """Returns a workflow with a digest of its key, to recognise it whoever submits it."""
    if spec.key is None:
        return spec
    plain = replace(spec.details, submitted_by=None, key_for=None, digest=None)
    digest = hashlib.sha256(msgspec.json.encode(replace(spec, details=plain)))
    for job in jobs:
        body = lasting_body(job)
        digest.update(b"%d:" % len(body))
        digest.update(body)
    return replace(spec, details=replace(spec.details, digest=digest.hexdigest()[:32]))


class Submission(NamedTuple):
    """One caller's jobs, checked; `workflow` makes a new group of them.

    `key` names the whole submission: if repeated, it gets the first answer again. With `reopen`,
    jobs may be added to a workflow that has ended. `origins` are the jobs that these repeat, each
    with those it has superseded: references to them mean the new ones. `ids` are ids that were
    reserved for these jobs, ascending. `beside` are jobs that were committed together with these:
    their keys count as taken even if they have ended by now.
    """

    jobs: Sequence[ValidatedJob]
    workflow: WorkflowSpec | None = None
    key: str | None = None
    reopen: bool = False
    origins: Mapping[int, int] | None = None  # id → index of the job
    ids: Sequence[int] = ()
    beside: frozenset[int] = frozenset()


class Submitted(NamedTuple):
    """The ids, in the order of the jobs; `applied` is False for jobs whose key was known.

    `at` is the time of the jobs; 0 if it is unknown, as in a repeated answer.
    """

    ids: tuple[int, ...]
    applied: tuple[bool, ...]
    workflow: int | None = None
    had_keys: Mapping[int, int] = {}  # in a repeated answer: jobs that had the keys, by place
    at: int = 0

    @property
    def known_workflow(self) -> int:
        """Returns the workflow of a submission that made one."""
        if self.workflow is None:
            raise ValueError(f"jobs {self.ids[:3]} were submitted into no workflow")
        return self.workflow


def bytes_of(submission: Submission) -> int:
    """Returns how many bytes it takes in a batch."""
    return sum(len(job.body) for job in submission.jobs)


def rows_of(jobs: Sequence[ValidatedJob]) -> int:
    """Returns about how many rows of usual size they take."""
    if len(jobs) > SMALL:
        return len(jobs)
    return len(jobs) + sum(len(job.body) for job in jobs) // ROW_BYTES


async def known_answers(
    work: Work, submissions: Sequence[Submission], places: Mapping[int, Sequence[int]]
) -> dict[int, Submitted | WindlassError]:
    """Returns the answers to submissions with known keys; records the keys of the others.

    Answers and `places`, the ids that new jobs would get, are keyed by the submission's `id`.
    """
    rows = {id(s): _key_row(s, places[id(s)]) for s in submissions if s.key is not None}
    if not rows:
        return {}
    ordered = sorted(rows.values(), key=lambda row: (row.namespace, row.key))
    standing = await work.tx.jobs.claim_keys(ordered)
    answers: dict[int, Submitted | WindlassError] = {}
    for number, row in rows.items():
        found = standing[row.namespace, row.key]
        if found.digest != row.digest:
            answers[number] = Conflict(
                "key_conflict",
                f"this submission's key was used before with other jobs, from job {found.job} on",
            )
        elif found.job != row.job:
            answers[number] = _answer_of(found)
    return answers


def _answer_of(found: KeyRow) -> Submitted:
    """Returns the first answer; `had_keys` are jobs that already had some of the keys."""
    spans = found.spans or ()
    at = spans.index(OTHERS) if OTHERS in spans else len(spans)
    ids = tuple(_ids_of(spans[:at]))
    return Submitted(ids, (False,) * len(ids), had_keys=dict(spans[at + 1 :]))


async def note_known(work: Work, submission: Submission, known: Mapping[int, int]) -> None:
    """Records the jobs that already had some of the keys, so that a repetition gets the same
    answer.

    `known` maps places in the submission to them, `places` are the ids that it got.
    """
    if submission.key is None or not known:
        return
    namespace, key, digest = submission_key(submission)
    row = KeyRow(namespace, key, 0, digest)
    standing = (await work.tx.jobs.claim_keys([row]))[namespace, key]
    noted = (*(standing.spans or ()), OTHERS, *sorted(known.items()))
    await work.tx.jobs.retake_keys([standing._replace(spans=noted)], [standing.job])


def _key_row(submission: Submission, ids: Sequence[int]) -> KeyRow:
    namespace, key, digest = submission_key(submission)
    return KeyRow(namespace, key, ids[0], digest, _spans_of(ids))


def submission_key(submission: Submission) -> tuple[str, str, str]:
    """Returns namespace and name of its key, and the digest of all that was submitted."""
    digest = hashlib.sha256()
    for job in submission.jobs:
        body = job.body if job.template.plain else encode_spec(job.spec)
        # ignores the attempt: a retried orchestrator has another number
        if job.spec.parent is not None:
            body = encode_spec(msgspec.structs.replace(job.spec, parent=None, submitted_by=None))
        digest.update(b"%d:" % len(body))
        digest.update(body)
    if submission.workflow is not None:
        digest.update(msgspec.json.encode(submission.workflow))
    name = f"{MARK}{submission.key}"
    return submission.jobs[0].shape.namespace, name, digest.hexdigest()[:32]


def _spans_of(ids: Iterable[int]) -> Spans:
    """Returns rising ids as spans: (7, 9), (12, 12)."""
    spans: list[tuple[int, int]] = []
    for job in ids:
        if spans and spans[-1][1] == job - 1:
            spans[-1] = spans[-1][0], job
        else:
            spans.append((job, job))
    return tuple(spans)


def _ids_of(spans: Spans) -> Iterable[int]:
    for first, last in spans:
        yield from range(first, last + 1)
