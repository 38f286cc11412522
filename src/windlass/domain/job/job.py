"""A job as it is submitted, and the checks at the door.

`prepare` turns a `JobSpec` into what the engine writes. It runs before any transaction,
so that one bad job of a batch is refused by name and nothing is written.
"""

import hashlib
from collections.abc import Iterable, Mapping
from itertools import pairwise
from operator import attrgetter
from typing import Any, Final, Literal, NamedTuple

import msgspec

from windlass.domain.access.secrets import secret_clauses
from windlass.domain.config import Config
from windlass.domain.lifecycle.failures import FAILURE_BY_NAME, FailureClass
from windlass.domain.lifecycle.rank import parse_priority
from windlass.domain.lifecycle.timeouts import RunLimits, limits_for
from windlass.domain.matching.clauses import Clause, canonical_requires, parse_clause, target
from windlass.domain.matching.rates import Rate, check_rate
from windlass.domain.matching.resources import canonical_resources
from windlass.domain.matching.shapes import Shape, shape_digest
from windlass.domain.tasks.kind import TaskKind
from windlass.domain.tasks.media import timed_as
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.json_values import (
    DEPTH_LIMIT,
    NOT_JSON,
    not_json,
    refuse_deep,
    refuse_not_finite,
    refuse_nul,
)

ALLOW_FAILURE: Final = 1
QUARANTINED: Final = 2
MANUAL: Final = 4
LENDS: Final = 8  # what it waits for may have its rank from it
PREEMPTIBLE: Final = 16

NAME_LIMIT: Final = 200
LABEL_LIMIT: Final = 100
DEPENDENCY_LIMIT: Final = 100_000
LONGEST_MS: Final = 366 * 86_400_000 * 100  # a century: what is longer is a mistake
RETRY_LIMIT: Final = 1_000
KNOWN_LIMIT: Final = 10_000
NEVER: Final = -1  # of a grace: the job waits, however long


class Concurrency(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """At most `max` jobs with this key run at once, in one namespace."""

    key: str
    max: int = 1


class JobSpec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One job as a client describes it. Durations and times are milliseconds.

    `after` and `after_any` name jobs: an integer is the id of an existing job, a string
    the name of a job in the same submission. `priority` is the base; without one the
    job takes its parent's effective priority, else 0. `secrets` names what workers hold.
    `capability_grace_ms` may be `NEVER`.
    """

    task: str
    args: Any = None
    priority: int | str | None = None
    namespace: str = "default"
    queue: str = "default"
    requires: tuple[str, ...] = ()
    resources: dict[str, Any] | None = None
    target: str | None = None
    secrets: tuple[str, ...] = ()
    prefers: tuple[str, ...] = ()
    apart: str | None = None
    rate: Rate | None = None
    submitted_by: str | None = None
    # Most jobs have none of the fields from here on, and need not be looked at closely.
    name: str | None = None
    after: tuple[int | str, ...] = ()
    after_any: tuple[int | str, ...] = ()
    allow_failure: bool = False
    unblock: Literal["auto", "manual"] = "auto"
    duration_ms: int | None = None
    timeout_ms: int | None = None
    idle_timeout_ms: int | None = None
    max_retries: int | None = None
    retry_on: tuple[str, ...] = ()
    not_before: int | None = None
    start_before: int | None = None
    finish_before: int | None = None
    capability_grace_ms: int | None = None
    preemptible: bool = False
    concurrency: Concurrency | None = None
    key: str | None = None
    labels: dict[str, str] | None = None
    parent: int | None = None
    workflow: int | None = None


_TIES: Final = JobSpec.__struct_fields__.index("name")
_AFTER_ARGS: Final = JobSpec.__struct_fields__.index("args") + 1
_UNTIED: Final = msgspec.structs.astuple(JobSpec(task=""))[_TIES:]
_NAMES: Final = JobSpec.__struct_fields__.index("after_any") + 1 - _TIES  # ties that are names
_PLAIN_TIES: Final = _UNTIED[_NAMES:]


class Mould(msgspec.Struct, frozen=True):
    """What is computed before the transaction, and is the same for jobs alike."""

    shape: Shape
    digest: str
    base: int | None
    flags: int
    timeout_ms: int
    idle_ms: int
    plain: bool  # no name, dependencies, key, limit, parent, workflow, planned time
    named: bool = False  # no ties but names: all fields behind those are as they are by default


NO_MOULD: Final = Mould(Shape(namespace="", queue="", task=""), "", None, 0, 0, 0, False)


class Prepared(msgspec.Struct, frozen=True, gc=False):
    """A checked job. Those that differ only in their arguments share a mould."""

    spec: JobSpec
    body: bytes
    mould: Mould
    body_digest: str | None = None  # of jobs with a key only

    @property
    def shape(self) -> Shape:
        return self.mould.shape

    @property
    def digest(self) -> str:
        """Of the shape."""
        return self.mould.digest


_encode: Final = msgspec.json.Encoder(order="deterministic").encode
_BACKSLASH: Final = ord("\\")
_fields_of: Final = msgspec.structs.astuple


class _Known(msgspec.Struct, frozen=True):
    """What the door remembers of jobs alike: checked names, the shape, default limits."""

    shape: Shape
    digest: str
    timeout_ms: int
    idle_ms: int


class _Last(NamedTuple):
    """The last job whose only ties were names: many come alike, and need be looked at once."""

    task: object = None
    rest: tuple[object, ...] = ()  # its fields but for task and arguments, as if it had no ties
    front: tuple[object, ...] = ()  # those of them that come before the ties
    mould: Mould = NO_MOULD
    tied: Mould = NO_MOULD


class Door:
    """Checks and prepares jobs. It remembers the shapes it has seen, a bounded number."""

    def __init__(self, config: Config, tasks: Mapping[str, TaskKind] | None = None) -> None:
        self._config = config
        self._tasks = tasks or {}
        self._known: dict[object, _Known] = {}
        self._last = _Last()
        self._short = min(2 * DEPTH_LIMIT, config.payload_limit)  # too short to be too deep

    def prepare(self, spec: JobSpec, field: str = "job") -> Prepared:
        """Check `spec`; `field` is how errors name it ("jobs[3]")."""
        return self.prepare_all((spec,), field)[0]

    def prepare_all(self, specs: Iterable[JobSpec], field: str = "job") -> list[Prepared]:
        """Check jobs one after the other; an error does not say which of them it met."""
        prepared: list[Prepared] = []
        short, tasks, known = self._short, self._tasks, self._last
        for spec in specs:
            try:
                body = _encode(spec)
            except NOT_JSON as error:
                raise not_json(error, field) from None
            if len(body) > short or b"null" in body or _BACKSLASH in body:
                self._check_body(spec, body, field)
            planned = self._plan(spec, field) if tasks else spec
            if planned is spec:
                fields = _fields_of(spec)
                if fields[0] == known.task:
                    if fields[_AFTER_ARGS:] == known.rest:
                        prepared.append(Prepared(spec, body, known.mould))
                        continue
                    if (  # names alone tell it from the last one
                        fields[_AFTER_ARGS:_TIES] == known.front
                        and fields[_TIES + _NAMES :] == _PLAIN_TIES
                    ):
                        _check_names(spec, field)
                        prepared.append(Prepared(spec, body, known.tied))
                        continue
            prepared.append(self._cast(spec, planned, body, field))
            known = self._last
        return prepared

    def _cast(self, spec: JobSpec, planned: JobSpec, body: bytes, field: str) -> Prepared:
        """Make the mould of a job that is not like the one before."""
        if spec.submitted_by is not None:
            check_name(f"{field}.submitted_by", spec.submitted_by)
        known = self._look_up(planned, field)
        base = None if spec.priority is None else parse_priority(spec.priority, f"{field}.priority")
        limits = known.timeout_ms, known.idle_ms
        ties = _fields_of(planned)[_TIES:]
        if ties[_NAMES:] == _PLAIN_TIES:
            alike = known.shape, known.digest, base, 0, *limits
            moulds = [Mould(*alike, plain, True) for plain in (True, False)]
            if planned is spec and spec.priority is None and spec.resources is None:
                # Numbers are left out: 1 is equal to 1.0 and True, which are checked.
                front = _fields_of(spec)[_AFTER_ARGS:_TIES]
                self._last = _Last(spec.task, front + _UNTIED, front, *moulds)
            if ties == _UNTIED:
                return Prepared(spec, body, moulds[0])
            _check_names(spec, field)
            return Prepared(spec, body, moulds[1])
        _check_ties(spec, field)
        if (
            planned.timeout_ms is not None
            or planned.idle_timeout_ms is not None
            or planned.duration_ms is not None
        ):
            own = self._limits(planned)
            limits = own.run_ms or 0, own.idle_ms or 0
        flags = ALLOW_FAILURE if spec.allow_failure else 0
        if spec.unblock == "manual":
            flags |= MANUAL
        if spec.preemptible:
            flags |= PREEMPTIBLE
        mould = Mould(known.shape, known.digest, base, flags, *limits, _stands_alone(spec))
        digest = None if spec.key is None else hashlib.sha256(body).hexdigest()[:32]
        return Prepared(spec, body, mould, digest)

    def _plan(self, spec: JobSpec, field: str) -> JobSpec:
        """The job with what follows from its arguments; those of unknown tasks pass unchecked."""
        kind = self._tasks.get(spec.task) if isinstance(spec.task, str) else None
        if kind is None:
            return spec
        plan = kind.check(spec.args, f"{field}.args")
        if not plan.requires and plan.duration_ms is None:
            return spec
        duration = spec.duration_ms if spec.duration_ms is not None else plan.duration_ms
        return msgspec.structs.replace(
            spec, requires=(*spec.requires, *plan.requires), duration_ms=duration
        )

    def _limits(self, spec: JobSpec) -> RunLimits:
        return limits_for(
            self._config.timeouts,
            task=spec.task if spec.duration_ms is None else timed_as(spec.task, spec.args),
            queue=spec.queue,
            duration_ms=spec.duration_ms,
            own_run_ms=spec.timeout_ms,
            own_idle_ms=spec.idle_timeout_ms,
        )

    def _check_body(self, spec: JobSpec, body: bytes, field: str) -> None:
        """Look closely at a body that is long or holds something rare."""
        if len(body) > self._config.payload_limit:
            self._check_size(spec, field)
        if body.count(b"[") + body.count(b"{") > DEPTH_LIMIT:
            refuse_deep(spec.args, f"{field}.args")
        if b"\\u0000" in body:
            refuse_nul(spec, field)
        if b"null" in body:
            refuse_not_finite(spec.args, f"{field}.args")

    def _check_size(self, spec: JobSpec, field: str) -> None:
        """Names of dependencies do not count: they have a limit of their own."""
        size = len(_encode(msgspec.structs.replace(spec, after=(), after_any=())))
        if size > self._config.payload_limit:
            limit = f"at most {self._config.payload_limit} bytes as JSON"
            raise InvalidInput(field, limit, f"{size} bytes")

    def _look_up(self, spec: JobSpec, field: str) -> _Known:
        seen: object = (spec.namespace, spec.queue, spec.task)
        if spec.requires or spec.resources is not None or spec.target is not None or spec.secrets:
            # Amounts as text: whatever a caller put there, it can be looked up.
            needs = () if spec.resources is None else repr(sorted(spec.resources.items()))
            texts = tuple(map(repr, spec.requires)), tuple(map(repr, spec.secrets))
            seen = (seen, *texts, needs, spec.target)
        if spec.prefers or spec.apart is not None or spec.rate is not None:
            rate = None if spec.rate is None else repr(spec.rate)
            seen = (seen, tuple(map(repr, spec.prefers)), repr(spec.apart), rate)
        known = self._known.get(seen)
        if known is None:
            shape = _build_shape(spec, field)
            bare = JobSpec(task=spec.task, queue=spec.queue)
            limits = self._limits(bare)
            known = _Known(shape, shape_digest(shape), limits.run_ms or 0, limits.idle_ms or 0)
            if len(self._known) >= KNOWN_LIMIT:
                self._known.clear()
            self._known[seen] = known
        return known


def _stands_alone(spec: JobSpec) -> bool:
    """Whether a job can be written without looking at any other, or at a limit."""
    return (
        spec.name is None
        and not spec.after
        and not spec.after_any
        and spec.unblock == "auto"
        and spec.not_before is None
        and spec.start_before is None
        and spec.finish_before is None
        and spec.capability_grace_ms is None
        and spec.concurrency is None
        and spec.key is None
        and spec.parent is None
        and spec.workflow is None
    )


def _build_shape(spec: JobSpec, field: str) -> Shape:
    for name in ("task", "queue", "namespace"):
        check_name(f"{field}.{name}", getattr(spec, name))
    clauses: list[Any] = list(spec.requires)
    for clause in clauses:
        if not isinstance(clause, str):
            raise InvalidInput("requires", "text such as memory>=4GiB", clause)
    if spec.target is not None:
        check_name(f"{field}.target", spec.target)
        clauses.append(target(spec.target))
    clauses += secret_clauses(spec.secrets, spec.namespace, field)
    if spec.apart is not None:
        check_name(f"{field}.apart", spec.apart)
    if spec.rate is not None:
        check_name(f"{field}.rate.key", spec.rate.key)
        check_rate(spec.rate, f"{field}.rate")
    return Shape(
        namespace=spec.namespace,
        queue=spec.queue,
        task=spec.task,
        requires=canonical_requires(clauses),
        resources=canonical_resources(spec.resources or {}),
        apart=spec.apart,
        prefers=_preferences(spec.prefers),
        rate=spec.rate,
    )


def _preferences(texts: tuple[Any, ...]) -> tuple[Clause, ...]:
    for text in texts:
        if not isinstance(text, str):
            raise InvalidInput("prefers", "text such as cache:repo==linux", text)
    return canonical_requires([parse_clause(text, "prefers") for text in texts])


_NUMBERS: Final = (
    ("timeout_ms", 1, LONGEST_MS),
    ("idle_timeout_ms", 1, LONGEST_MS),
    ("duration_ms", 1, LONGEST_MS),
    ("not_before", 0, LONGEST_MS),
    ("start_before", 1, LONGEST_MS),
    ("finish_before", 1, LONGEST_MS),
    ("capability_grace_ms", NEVER, LONGEST_MS),
    ("max_retries", 0, RETRY_LIMIT),
    ("parent", 1, 2**62),
    ("workflow", 1, 2**62),
)


_numbers_of: Final = attrgetter(*(name for name, *_ in _NUMBERS))
_NO_NUMBERS: Final = _numbers_of(JobSpec(task=""))


def _check_names(spec: JobSpec, field: str) -> None:
    """Its name, and the jobs it names."""
    name, after, after_any = spec.name, spec.after, spec.after_any
    if name is not None and not (type(name) is str and _is_name(name)):
        check_name(f"{field}.name", name)
    if after and not _are_names(after, name):
        _check_references(f"{field}.after", after, name)
    if after_any and not _are_names(after_any, name):
        _check_references(f"{field}.after_any", after_any, name)


def _check_ties(spec: JobSpec, field: str) -> None:
    _check_names(spec, field)
    if spec.key is not None:
        check_name(f"{field}.key", spec.key)
    if _numbers_of(spec) != _NO_NUMBERS:
        _check_numbers(spec, field)
    check_labels(spec.labels, field)
    if spec.concurrency is not None:
        check_name(f"{field}.concurrency.key", spec.concurrency.key)
        _check_number(f"{field}.concurrency.max", spec.concurrency.max, 1, 1_000_000)
    for name in spec.retry_on:
        if FAILURE_BY_NAME.get(name) in (None, FailureClass.CANCELED):
            known = ", ".join(c for c in FailureClass if c is not FailureClass.CANCELED)
            raise InvalidInput(f"{field}.retry_on", f"some of {known}", name)


def _check_numbers(spec: JobSpec, field: str) -> None:
    """Refuse what is out of bounds, and a job that could only ever miss its own deadline."""
    for name, low, high in _NUMBERS:
        value = getattr(spec, name)
        if value is not None:
            _check_number(f"{field}.{name}", value, low, high)
    times = ("not_before", "start_before", "finish_before")
    given = [(name, value) for name in times if (value := getattr(spec, name)) is not None]
    for (earlier, low), (later, high) in pairwise(given):
        if low >= high:
            raise InvalidInput(f"{field}.{later}", f"a time after {earlier}", "one before it")


def check_labels(labels: Mapping[str, str] | None, field: str) -> None:
    """Refuse too many, and what cannot be a label."""
    if labels is None:
        return
    if len(labels) > LABEL_LIMIT:
        raise InvalidInput(f"{field}.labels", f"at most {LABEL_LIMIT}", len(labels))
    for name, value in labels.items():
        check_name(f"{field}.labels", name)
        if not isinstance(value, str) or len(value) > NAME_LIMIT:
            raise InvalidInput(
                f"{field}.labels.{name}", f"text of at most {NAME_LIMIT} characters", value
            )


def _check_references(field: str, references: tuple[int | str, ...], own: str | None) -> None:
    if len(references) > DEPENDENCY_LIMIT:
        raise InvalidInput(field, f"at most {DEPENDENCY_LIMIT} jobs", len(references))
    if own is not None and own in references:
        raise InvalidInput(field, "other jobs", f"its own name {own}")
    # A text that is no name is not the name of a job either, and is refused for that.
    for reference in references:
        if reference is None:
            raise InvalidInput(field, "names and ids of jobs", reference)
        if type(reference) is not str:
            _check_number(field, reference, 1, 2**62)


def _are_names(references: tuple[Any, ...], own: str | None) -> bool:
    """Whether they need no closer look. Only texts can be joined: asked at once, not each."""
    try:
        "".join(references)
    except TypeError:
        return False
    return len(references) <= DEPENDENCY_LIMIT and own not in references


def _is_name(value: str) -> bool:
    return 0 < len(value) <= NAME_LIMIT and value.isprintable()


def check_name(field: str, value: object) -> None:
    """Refuse what cannot be a name."""
    if not isinstance(value, str) or not _is_name(value):
        limit = f"printable text of 1 to {NAME_LIMIT} characters"
        raise InvalidInput(field, limit, value)


def _check_number(field: str, value: object, low: int, high: int) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool) or not low <= value <= high:
        raise InvalidInput(field, f"an integer from {low} to {high}", value)
