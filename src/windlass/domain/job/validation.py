"""Validates jobs before any transaction.

`Validator` turns a `JobSpec` into what the engine writes. One bad job of a batch is refused by
name, and nothing is written.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from windlass.domain.config import Config
from windlass.domain.job.build_shape import build_shape
from windlass.domain.job.forms import Duration, canonical_window, moment_ms
from windlass.domain.job.job import (
    ALLOW_FAILURE,
    CONDITIONAL,
    KEY_BINDS,
    MANUAL,
    OPTIONS,
    PREEMPTIBLE,
    JobSpec,
    check_labels,
    counts_from_now,
    encode_spec,
    normalise,
    with_times,
)
from windlass.domain.job.retry_options import check_retries
from windlass.domain.job.run_if import waits_for_ends
from windlass.domain.lifecycle.rank import parse_priority
from windlass.domain.lifecycle.timeouts import RunLimits, limits_for
from windlass.domain.lifecycle.traces import check_trace
from windlass.domain.matching.shapes import Shape, shape_digest
from windlass.domain.tasks.kind import TaskKind
from windlass.domain.tasks.media import timed_as
from windlass.domain.tasks.references import FILE, RESULT, results_in, uploads_in
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.json_values import (
    DEPTH_LIMIT,
    NOT_JSON,
    not_json,
    refuse_deep,
    refuse_not_finite,
    refuse_nul,
)
from windlass.domain.values.names import check_name, is_name

DEPENDENCY_LIMIT: Final = 100_000
KNOWN_LIMIT: Final = 10_000
_AS_FILE: Final = "send large arguments as files: `Path` in Python, --input on the command line"


class JobTemplate(msgspec.Struct, frozen=True):
    """What jobs that differ only in arguments and names have in common."""

    shape: Shape
    digest: str  # digest of the shape
    base: int | None
    flags: int
    timeout_ms: int | None
    idle_ms: int | None
    plain: bool  # can be written without checking any other job, limit or time
    only_named: bool = False  # differs from others only in name and dependencies


NO_RELATIONS: Final = b"{}"
NO_TEMPLATE: Final = JobTemplate(Shape(namespace="", queue="", task=""), "", None, 0, 0, 0, False)


class ValidatedJob(msgspec.Struct, frozen=True, gc=False):
    """A validated job. Those that differ only in arguments and names share a template.

    `body` is the spec as JSON without `after`, `after_any` and `workflow`, which the engine
    adds when it knows the ids.
    """

    spec: JobSpec
    body: bytes
    template: JobTemplate
    body_digest: str | None = None  # digest of the whole spec; only for jobs with a key
    refers: bool = False  # its arguments name results of other jobs
    uploads: tuple[str, ...] = ()  # digests of uploaded files that its arguments name

    @property
    def shape(self) -> Shape:
        return self.template.shape


class Relations(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """The part of a stored spec that refers to other rows by id; a body does not have it."""

    after: Sequence[int] = ()
    after_any: Sequence[int] = ()
    workflow: int | None = None


def with_relations(body: bytes, relations: bytes) -> bytes:
    """Returns the spec to store: the fields of a body and of `Relations`, both as JSON."""
    return body if relations == NO_RELATIONS else body[:-1] + b"," + relations[1:]


class _Known(msgspec.Struct, frozen=True):
    """What the validator remembers about a shape: checked names and default limits."""

    shape: Shape
    digest: str
    timeout_ms: int | None
    idle_ms: int | None


class _Last(NamedTuple):
    """The last job, to compare the next one with, which is often similar."""

    bare: JobSpec | None = None  # without arguments, name and dependencies
    alone: JobTemplate = NO_TEMPLATE  # of jobs without name and dependencies
    named: JobTemplate = NO_TEMPLATE
    function: str | None = None  # that it calls


# Fields that decide shape and priority, and those that differ from job to job; jobs with any other
# field are rare.
_SHAPING: Final = frozenset(
    {"task", "priority", "namespace", "queue", "requires", "resources", "target", "secrets",
     "prefers", "apart", "rate", "submitted_by", "isolation", "network", "image", "pull",
     "registry_secret", "version"}
)  # fmt: skip
NOT_APART: Final = (None,) * 5  # of the options that decide the isolation of a job
_OWN: Final = frozenset({"args", "name", "after", "after_any"})
_more_of: Final = attrgetter(*sorted(frozenset(OPTIONS) - _SHAPING - _OWN))
_NO_MORE: Final = _more_of(JobSpec(task=""))
_BACKSLASH: Final = ord("\\")
_DOLLAR: Final = ord("$")
_RESULT: Final = f'"{RESULT}"'.encode()
_FILE: Final = f'"{FILE}"'.encode()


class Validator:
    """Validates jobs. It remembers a bounded number of shapes."""

    def __init__(self, config: Config, tasks: Mapping[str, TaskKind] | None = None) -> None:
        self._config = config
        self._tasks = tasks or {}
        self._queue_timeouts: Mapping[str, int] = {}
        self._known: dict[object, _Known] = {}
        self._last = _Last()
        self._short = min(2 * DEPTH_LIMIT, config.payload_limit)  # too short to be too deep

    def use_timeouts(self, queues: Mapping[str, int]) -> None:
        """Sets the timeouts (ms, 0: none) that these queues give to jobs without their own.

        To change one, pass a new mapping.
        """
        if queues is not self._queue_timeouts:
            self._queue_timeouts = queues
            self._known = {}
            self._last = _Last()

    def validate(self, spec: JobSpec, field: str = "job", now: int | None = None) -> ValidatedJob:
        """Validates one job; `field` is how errors name it, such as "jobs[3]"."""
        return self.validate_all((spec,), field, now)[0]

    def validate_all(
        self, specs: Iterable[JobSpec], field: str = "job", now: int | None = None
    ) -> list[ValidatedJob]:
        """Validates jobs in order; an error does not say which job it is about.

        Times that count from the submission count from `now`. Without it, jobs that have such times
        are only checked.
        """
        validated: list[ValidatedJob] = []
        short, tasks, last = self._short, self._tasks, self._last
        for spec in specs:
            waits = bool(spec.after or spec.after_any)
            alone = replace(spec, after=(), after_any=()) if waits else spec
            try:
                body = encode_spec(alone)
            except NOT_JSON as error:
                raise not_json(error, field) from None
            if len(body) > short or b"null" in body or _BACKSLASH in body:
                self._check_body(alone, body, field)
            if _DOLLAR in body and (_RESULT in body or _FILE in body):
                validated.append(self._validate_referring(spec, body, field, now))
                last = self._last
                continue
            planned, function = self._plan(spec, field) if tasks else (spec, None)
            if (
                planned is spec
                and function == last.function
                and replace(alone, args=None, name=None) == last.bare
            ):
                if waits or spec.name is not None:
                    _check_names(spec, field)
                    validated.append(ValidatedJob(spec, body, last.named))
                else:
                    validated.append(ValidatedJob(spec, body, last.alone))
                continue
            closely = self._look_closely(spec, planned, function, body, field, now)
            validated.append(closely)
            last = self._last
        return validated

    def _validate_referring(
        self, spec: JobSpec, body: bytes, field: str, now: int | None
    ) -> ValidatedJob:
        """Validates a job whose arguments may refer to files or to results of other jobs."""
        needed = dict.fromkeys(results_in(spec.args, f"{field}.args"))
        known = {*spec.after, *spec.after_any}
        missing = tuple(job for job in needed if job not in known)
        if missing:
            spec = replace(spec, after=(*spec.after, *missing))
        planned, function = self._plan(spec, field) if self._tasks else (spec, None)
        made = self._look_closely(spec, planned, function, body, field, now)
        uploads = tuple(dict.fromkeys(uploads_in(spec.args)))
        if uploads:
            made = replace(made, uploads=uploads, template=replace(made.template, plain=False))
        return replace(made, refers=True) if needed else made

    def _look_closely(
        self,
        spec: JobSpec,
        planned: JobSpec,
        function: str | None,
        body: bytes,
        field: str,
        now: int | None,
    ) -> ValidatedJob:
        """Validates a job that differs from the one before."""
        if spec.run_if is not None:
            same = planned is spec
            spec = waits_for_ends(spec, field)
            planned = spec if same else replace(planned, after=(), after_any=spec.after_any)
        if spec.submitted_by is not None:
            check_name(f"{field}.submitted_by", spec.submitted_by)
        own = normalise(spec, field)
        settled = own if planned is spec else normalise(planned, field)
        known = self._look_up(settled, function, field)
        base = None if spec.priority is None else parse_priority(spec.priority, f"{field}.priority")
        if own is not spec or own.workflow is not None:
            body = encode_spec(_alone(own))
        named = own.name is not None or bool(own.after or own.after_any)
        if named:
            _check_names(own, field)
        more = _more_of(settled) != _NO_MORE
        if more:
            # A repeated submission with the same key is still the same job.
            digest = None if own.key is None else digest_of(own)
            if now is not None and counts_from_now(own):
                own = with_times(own, now)
                settled = with_times(settled, now)
                body = encode_spec(_alone(own))
            _check_more(own, field)
            return ValidatedJob(own, body, self._template(settled, known, base, named), digest)
        alike = known.shape, known.digest, base, 0, known.timeout_ms, known.idle_ms
        template = JobTemplate(*alike, not named, True)
        if settled is spec and not (spec.resources or spec.rate or type(spec.priority) is int):
            # Numbers are left out: 1 equals 1.0 and True, which are refused.
            bare = replace(spec, args=None, name=None, after=(), after_any=())
            other = JobTemplate(*alike, named, True)
            self._last = _Last(bare, *((other, template) if named else (template, other)), function)
        return ValidatedJob(own, body, template)

    def _template(self, spec: JobSpec, known: _Known, base: int | None, named: bool) -> JobTemplate:
        """Returns the template of a job with uncommon options."""
        timeout_ms, idle_ms = known.timeout_ms, known.idle_ms
        if not (spec.timeout is spec.idle_timeout is spec.duration is None):
            limits = self._limits(spec)
            timeout_ms, idle_ms = limits.run_ms or None, limits.idle_ms or None
        flags = ALLOW_FAILURE if spec.allow_failure else 0
        if spec.unblock == "manual":
            flags |= MANUAL
        if spec.run_if is not None:
            flags |= CONDITIONAL
        if spec.preemptible:
            flags |= PREEMPTIBLE
        if spec.key_for is not None:
            flags |= KEY_BINDS
        plain = not named and _is_plain(spec)
        return JobTemplate(known.shape, known.digest, base, flags, timeout_ms, idle_ms, plain)

    def _plan(self, spec: JobSpec, field: str) -> tuple[JobSpec, str | None]:
        """Adds what follows from the arguments, and the function that they call.

        Arguments of unknown tasks are not checked.
        """
        kind = self._tasks.get(spec.task) if isinstance(spec.task, str) else None
        if kind is None:
            return spec, None
        plan = kind.check(spec.args, f"{field}.args")
        if not plan.requires and plan.duration_ms is None:
            return spec, plan.function
        duration = spec.duration
        if duration is None and plan.duration_ms is not None:
            duration = plan.duration_ms / 1000
        requires = (*spec.requires, *plan.requires)
        return replace(spec, requires=requires, duration=duration), plan.function

    def _limits(self, spec: JobSpec) -> RunLimits:
        return limits_for(
            self._config.timeouts,
            task=spec.task if spec.duration is None else timed_as(spec.task, spec.args),
            queue=spec.queue,
            duration_ms=spec.duration_ms,
            own_run_ms=spec.timeout_ms,
            own_idle_ms=spec.idle_timeout_ms,
            queue_ms=self._queue_timeouts.get(spec.queue),
        )

    def _check_body(self, spec: JobSpec, body: bytes, field: str) -> None:
        """Checks a body that is long or contains something unusual."""
        if len(body) > self._config.payload_limit:
            limit = f"at most {self._config.payload_limit} bytes as JSON"
            raise InvalidInput(field, limit, f"{len(body)} bytes", _AS_FILE)
        if body.count(b"[") + body.count(b"{") > DEPTH_LIMIT:
            refuse_deep(spec.args, f"{field}.args")
        if b"\\u0000" in body:
            refuse_nul(spec, field)
        if b"null" in body:
            refuse_not_finite(spec.args, f"{field}.args")

    def _look_up(self, spec: JobSpec, function: str | None, field: str) -> _Known:
        seen: object = (spec.namespace, spec.queue, spec.task, function)
        if spec.version is not None:
            seen = (seen, repr(spec.version))
        if spec.requires or spec.resources is not None or spec.target is not None or spec.secrets:
            # Amounts as text: any value from a caller then works as a key.
            needs = () if spec.resources is None else repr(sorted(spec.resources.items()))
            texts = tuple(map(repr, spec.requires)), tuple(map(repr, spec.secrets))
            seen = (seen, *texts, needs, spec.target)
        if spec.prefers or spec.apart is not None or spec.rate is not None:
            rate = None if spec.rate is None else repr(spec.rate)
            seen = (seen, tuple(map(repr, spec.prefers)), repr(spec.apart), rate)
        apart = spec.isolation, spec.network, spec.image, spec.pull, spec.registry_secret
        if apart != NOT_APART:
            seen = (seen, *map(repr, apart))
        known = self._known.get(seen)
        if known is None:
            shape = build_shape(spec, function, field)
            limits = self._limits(JobSpec(task=spec.task, queue=spec.queue))
            timeouts = limits.run_ms or None, limits.idle_ms or None
            known = _Known(shape, shape_digest(shape), *timeouts)
            if len(self._known) >= KNOWN_LIMIT:
                self._known.clear()
            self._known[seen] = known
        return known


def digest_of(spec: JobSpec) -> str:
    """Returns a digest of the spec that recognises a repeated submission, whoever submits it."""
    return hashlib.sha256(lasting_body(spec)).hexdigest()[:32]


def lasting_body(spec: JobSpec) -> bytes:
    """Returns what the spec says about the job itself, as JSON: not who submits it, nor when."""
    return encode_spec(replace(spec, key_for=None, trace=None, submitted_by=None))


def _alone(spec: JobSpec) -> JobSpec:
    """Returns the spec without its relations."""
    if not spec.after and not spec.after_any and spec.workflow is None:
        return spec
    return replace(spec, after=(), after_any=(), workflow=None)


def _is_plain(spec: JobSpec) -> bool:
    """Returns whether an unnamed job can be written without checking any other job."""
    return (
        spec.unblock == "auto"
        and spec.run_if is None
        and spec.not_before is None
        and spec.delay is None
        and spec.start_before is None
        and spec.finish_before is None
        and spec.capability_grace is None
        and spec.concurrency is None
        and spec.key is None
        and spec.parent is None
        and spec.workflow is None
    )


_TEXTS: Final = tuple(
    (o.name, o.chars)
    for o in OPTIONS.values()
    if o.chars is not None and o.name not in _SHAPING | _OWN  # which are checked with the shape
)
_BOUNDED: Final = tuple((o.name, o.bounds) for o in OPTIONS.values() if o.bounds is not None)
_TIMES: Final = ("not_before", "start_before", "finish_before")


def _check_names(spec: JobSpec, field: str) -> None:
    """Checks the job's name and the names of its dependencies."""
    name, after, after_any = spec.name, spec.after, spec.after_any
    if name is not None and not (type(name) is str and is_name(name)):
        check_name(f"{field}.name", name)
    if after and not _are_names(after, name):
        _check_references(f"{field}.after", after, name)
    if after_any and not _are_names(after_any, name):
        _check_references(f"{field}.after_any", after_any, name)


def _check_more(spec: JobSpec, field: str) -> None:
    """Checks the uncommon options."""
    for name, chars in _TEXTS:
        text = getattr(spec, name)
        if text is not None:
            check_name(f"{field}.{name}", text, chars)
    canonical_window(spec.key_for, spec.key, f"{field}.key_for")
    for name, (low, high) in _BOUNDED:
        value = getattr(spec, name)
        if value is not None:
            _check_number(f"{field}.{name}", value, low, high)
    if not (spec.not_before is spec.start_before is spec.finish_before is None):
        _check_times(spec, field)
    check_labels(spec.labels, field)
    if spec.trace is not None:
        check_trace(f"{field}.trace", spec.trace)
    if spec.concurrency is not None:
        check_name(f"{field}.concurrency.key", spec.concurrency.key)
        _check_number(f"{field}.concurrency.max", spec.concurrency.max, 1, 1_000_000)
    check_retries(spec, field)


def _check_times(spec: JobSpec, field: str) -> None:
    """Refuses a job that could only miss its own deadline."""
    given = [(name, at) for name in _TIMES if (at := moment_ms(getattr(spec, name))) is not None]
    for (earlier, low), (later, high) in pairwise(given):
        if low >= high:
            raise InvalidInput(f"{field}.{later}", f"a time after {earlier}", "one before it")


def _check_references(field: str, references: tuple[int | str, ...], own: str | None) -> None:
    if len(references) > DEPENDENCY_LIMIT:
        raise InvalidInput(field, f"at most {DEPENDENCY_LIMIT} jobs", len(references))
    if own is not None and own in references:
        raise InvalidInput(field, "other jobs", f"its own name {own}")
    # A text that is not a valid name cannot be the name of a job, and is refused for that.
    for reference in references:
        if reference is None:
            raise InvalidInput(field, "names and ids of jobs", reference)
        if type(reference) is not str:
            _check_number(field, reference, 1, 2**62)


def _are_names(references: tuple[Any, ...], own: str | None) -> bool:
    """Returns whether all are texts other than its own name; one join checks them all."""
    try:
        "".join(references)
    except TypeError:
        return False
    return len(references) <= DEPENDENCY_LIMIT and own not in references


def _check_number(field: str, value: object, low: int, high: int) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(field, f"an integer from {low} to {high}", value)


def check_workflow_options(
    name: str,
    namespace: str | None,
    key: str | None,
    priority: int | str | None,
    labels: Mapping[str, str],
    key_for: Duration | None = None,
) -> None:
    """Raises `InvalidInput` for an option that no workflow can have, as `workflow.NAME`."""
    check_name("workflow.name", name)
    for option, value in (("namespace", namespace), ("key", key)):
        if value is not None:
            check_name(f"workflow.{option}", value)
    canonical_window(key_for, key, "workflow.key_for")
    if priority is not None:
        parse_priority(priority, "workflow.priority")
    check_labels(labels, "workflow")
