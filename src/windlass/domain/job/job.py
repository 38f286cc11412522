"""The description of a job: one declaration of every option, for all who describe jobs.

`JobSpec` is what HTTP requests contain, what clients build and what stores keep. Each field
declares its form, default, help text, flag, and whether workflow files have it. Flags, file keys,
JSON schemas, keywords and reference pages are generated from that.
"""

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Annotated, Any, Final, Literal, get_args, get_origin

import msgspec

from windlass.domain.job.forms import (
    AMOUNTS,
    BACKOFF,
    CLAUSES,
    CONCURRENCY,
    DELAY,
    DURATION,
    FAILURES,
    GRACE,
    JSON,
    KEY_WINDOW,
    LABELS,
    LIMITS,
    MOMENT,
    NONE,
    NUMBER,
    PRIORITY,
    RATE,
    REFERENCES,
    SWITCH,
    TEXT,
    TEXTS,
    TIMEOUT,
    Backoff,
    Concurrency,
    Duration,
    Form,
    JobLimits,
    RateLimit,
    is_relative,
    milliseconds,
    moment_ms,
)
from windlass.domain.values.errors import InvalidInput, UnknownName
from windlass.domain.values.names import NAME_LIMIT, check_name, did_you_mean
from windlass.domain.values.quantities import format_moment, parse_duration_ms

ALLOW_FAILURE: Final = 1
QUARANTINED: Final = 2
MANUAL: Final = 4
LENDS: Final = 8  # its dependencies may inherit its rank
PREEMPTIBLE: Final = 16
KEY_BINDS: Final = 32  # its key is reserved for a fixed time
CONDITIONAL: Final = 64  # whether it runs is decided when its dependencies have ended

LABEL_LIMIT: Final = 100
DEFAULT_NAMESPACE: Final = "default"
IDS: Final = (1, 2**62)


class _Declared(msgspec.Struct, frozen=True):
    """What an annotation says about an option besides its type and help text."""

    form: Form
    flag: str | None  # empty: it follows from the name
    in_files: bool
    bounds: tuple[int, int] | None
    chars: int | None
    note: str


def _option(
    text: str,
    form: Form = TEXT,
    *,
    flag: str | None = "",
    file: bool = True,
    bounds: tuple[int, int] | None = None,
    chars: int | None = None,
    note: str = "",
) -> Any:
    """Declares an option: its help text, form, flag, limits, and whether files have it.

    By default the flag has the name of the option: --start-before for `start_before`.
    A number is within `bounds`; a text is printable and has at most `chars` characters. `note` is
    added to the help of the flag; by default it is the note of the form.
    """
    declared = _Declared(form, flag, file, bounds, chars, note or form.note)
    return msgspec.Meta(description=text, extra={"declared": declared})


class JobSpec(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    omit_defaults=True,
    forbid_unknown_fields=True,
    gc=False,
):
    """One job, as clients describe it and as it is stored.

    Durations are seconds or text such as "15m"; times are RFC 3339, or durations from the
    submission: `normalise` makes them canonical, and `with_times` turns durations into times. The
    server sets `submitted_by`.
    """

    task: Annotated[
        str, _option("The task to run.", note="Instead of a command, together with --args.")
    ]
    args: Annotated[Any, _option("The arguments of the task.", JSON)] = None
    target: Annotated[
        str | None,
        _option("The architecture the worker must have, such as arm64.", chars=NAME_LIMIT),
    ] = None
    queue: Annotated[
        str, _option("live, default, batch or a queue of your own.", chars=NAME_LIMIT)
    ] = "default"
    priority: Annotated[
        int | str | None,
        _option(
            "high, medium, low or a number. Default: the priority of its parent or workflow, "
            "else 0.",
            PRIORITY,
        ),
    ] = None
    requires: Annotated[
        tuple[str, ...], _option("What the worker must offer, such as 'memory>=4GiB'.", CLAUSES)
    ] = ()
    version: Annotated[
        str | None,
        _option(
            "The version of the function that the worker must have, as declared by its task.",
            flag="--task-version",
        ),
    ] = None
    resources: Annotated[
        dict[str, int | str] | None, _option("What the job uses, such as cpus=2.", AMOUNTS)
    ] = None
    secrets: Annotated[
        tuple[str, ...],
        _option("The names of worker secrets that the job needs.", TEXTS, flag="--secret"),
    ] = ()
    isolation: Annotated[
        Literal["process", "user", "sandbox", "container"] | None,
        _option(
            "Minimum isolation from the worker and other jobs: process, user, sandbox or "
            "container.",
        ),
    ] = None
    network: Annotated[
        Literal["host", "none"] | None,
        _option("none: no network access. Needs a sandbox or a container."),
    ] = None
    image: Annotated[str | None, _option("The container image that it runs in.")] = None
    pull: Annotated[
        Literal["missing", "always", "never"] | None,
        _option("When the worker fetches the image: missing, always or never."),
    ] = None
    registry_secret: Annotated[
        str | None,
        _option(
            "The name of the worker secret with the credentials for the image's registry: "
            "USER:PASSWORD, or an auth file.",
        ),
    ] = None
    limits: Annotated[
        JobLimits | None,
        _option(
            "Limits for all its processes together: memory, cpu_time, processes, disk; "
            "open_files is per process.",
            LIMITS,
            flag="--limit",
        ),
    ] = None
    after: Annotated[
        tuple[int | str, ...],
        _option("The jobs that must complete first, by id or name.", REFERENCES),
    ] = ()
    after_any: Annotated[
        tuple[int | str, ...],
        _option("Jobs that must end first, whether they complete or fail.", REFERENCES),
    ] = ()
    run_if: Annotated[
        str | None,
        _option(
            "Run it only if this holds when the jobs it waits for have ended: success(), "
            "failure(), always(), state('NAME') == 'failed'. Otherwise it is skipped.",
            file=False,
        ),
    ] = None
    allow_failure: Annotated[
        bool, _option("Let dependents and the workflow continue if it fails.", SWITCH)
    ] = False
    unblock: Annotated[
        Literal["auto", "manual"], _option("manual: it waits until an operator approves it.")
    ] = "auto"
    workflow: Annotated[
        int | None,
        _option("The id of an unfinished workflow to join.", NUMBER, file=False, bounds=IDS),
    ] = None
    timeout: Annotated[
        Duration | None,
        _option(
            "How long it may run. Default: by the duration of its media, else the timeout of its "
            "queue, else 30 minutes (timeouts.default).",
            TIMEOUT,
        ),
    ] = None
    idle_timeout: Annotated[
        Duration | None, _option("How long it may run without log output or progress.", DURATION)
    ] = None
    duration: Annotated[
        Duration | None,
        _option("The duration of its media, from which its timeout follows.", DURATION),
    ] = None
    not_before: Annotated[str | None, _option("The earliest time it may start.", MOMENT)] = None
    delay: Annotated[
        Duration | None,
        _option("How long after its submission it may start at the earliest.", DELAY),
    ] = None
    start_before: Annotated[
        str | None, _option("Cancel it if it has not started by then.", MOMENT)
    ] = None
    finish_before: Annotated[
        str | None,
        _option("Fail it if it has not ended by then; cancel it if it is still queued.", MOMENT),
    ] = None
    capability_grace: Annotated[
        Duration | None,
        _option("How long it waits if no known worker can run it: a duration, 0 or never.", GRACE),
    ] = None
    prefers: Annotated[
        tuple[str, ...],
        _option(
            "What the worker should have if possible, such as 'cache:repo==linux'. It never "
            "delays the job.",
            CLAUSES,
        ),
    ] = ()
    apart: Annotated[
        str | None,
        _option(
            "Never run two jobs with the same value on one worker at the same time.",
            chars=NAME_LIMIT,
        ),
    ] = None
    concurrency: Annotated[
        Concurrency | None,
        _option("How many jobs with this key may run at the same time; default 1.", CONCURRENCY),
    ] = None
    rate: Annotated[
        RateLimit | None,
        _option("How many jobs with this key may start within the given time.", RATE),
    ] = None
    preemptible: Annotated[
        bool,
        _option("Jobs in preempting queues may take its worker; this job is queued again.", SWITCH),
    ] = False
    retries: Annotated[
        int | None,
        _option(
            "How many times it is retried after any failure. Default: 3, after transient "
            "failures only.",
            NUMBER,
            bounds=(0, 1_000),
        ),
    ] = None
    retry_on: Annotated[
        tuple[str, ...],
        _option(
            "Which failures are retried: with `retries` only these, without it these and "
            "transient ones. Classes of failures and, for functions, exceptions.",
            FAILURES,
        ),
    ] = ()
    no_retry_on: Annotated[
        tuple[str, ...],
        _option(
            "Which failures are never retried: classes of failures and, for functions, exceptions.",
            FAILURES,
        ),
    ] = ()
    backoff: Annotated[
        Backoff | None,
        _option(
            "How long it waits before a retry: first initial, then factor times longer each "
            "time, up to max; each wait is shortened at random, by up to the fraction jitter.",
            BACKOFF,
        ),
    ] = None
    key: Annotated[
        str | None,
        _option(
            "A unique key: submitting it again returns the job that holds the key, until that "
            "job has ended.",
            file=False,
            chars=NAME_LIMIT,
        ),
    ] = None
    key_for: Annotated[
        Duration | None,
        _option(
            "How long it holds its key, counted from its submission, even if it ends earlier.",
            KEY_WINDOW,
            file=False,
        ),
    ] = None
    kind: Annotated[
        str | None,
        _option(
            "The kind of work: past run times of a kind predict the next ones. Default: its "
            "function, or its program and first argument.",
            chars=NAME_LIMIT,
        ),
    ] = None
    labels: Annotated[
        dict[str, str] | None, _option("Names and values to find it by.", LABELS, flag="--label")
    ] = None
    name: Annotated[str | None, _option("A name to display.", file=False, chars=NAME_LIMIT)] = None
    namespace: Annotated[
        str | None,
        _option(
            "Its namespace. Default: the token's namespace, or default.",
            file=False,
            chars=NAME_LIMIT,
        ),
    ] = None
    parent: Annotated[
        int | None,
        _option(
            "The id of a job whose effective priority it inherits if it has none.",
            NUMBER,
            file=False,
            bounds=IDS,
        ),
    ] = None
    trace: Annotated[
        str | None,
        _option(
            "The trace it belongs to, as a W3C traceparent. Default: the client's trace.",
            file=False,
        ),
    ] = None
    submitted_by: Annotated[
        str | None, _option("Who submitted it. Set by the server.", flag=None, file=False)
    ] = None

    @property
    def timeout_ms(self) -> int | None:
        """Returns the job's own timeout; 0: it may run for any time."""
        return 0 if self.timeout == NONE else milliseconds(self.timeout)

    @property
    def idle_timeout_ms(self) -> int | None:
        return milliseconds(self.idle_timeout)

    @property
    def duration_ms(self) -> int | None:
        return milliseconds(self.duration)

    @property
    def not_before_ms(self) -> int | None:
        return moment_ms(self.not_before)

    @property
    def start_before_ms(self) -> int | None:
        return moment_ms(self.start_before)

    @property
    def finish_before_ms(self) -> int | None:
        return moment_ms(self.finish_before)


class JobOption(msgspec.Struct, frozen=True):
    """One option of a job, as it is declared in `JobSpec`."""

    name: str  # the field in JSON, the key in files and the keyword in Python
    type: Any
    default: Any
    help: str
    form: Form
    flag: str | None
    in_files: bool
    bounds: tuple[int, int] | None  # of a number
    chars: int | None  # at most, of a text
    required: bool
    note: str  # what the help of the flag adds


def _options() -> dict[str, JobOption]:
    found: dict[str, JobOption] = {}
    for field in msgspec.structs.fields(JobSpec):
        kind, meta = get_args(field.type)
        declared: _Declared = meta.extra["declared"]
        default = None if field.required else field.default
        named = f"--{field.name.replace('_', '-')}"
        flag = named if declared.flag == "" else declared.flag
        found[field.name] = JobOption(
            field.name, kind, default, meta.description, declared.form, flag,
            declared.in_files, declared.bounds, declared.chars, field.required, declared.note,
        )  # fmt: skip
    return found


def _choices(kind: Any) -> tuple[str, ...]:
    """Returns the values of an option that has a fixed set of them."""
    named = [one for one in (kind, *get_args(kind)) if get_origin(one) is Literal]
    return get_args(named[0]) if named else ()


OPTIONS: Final[Mapping[str, JobOption]] = _options()
CHOICES: Final = {o.name: _choices(o.type) for o in OPTIONS.values() if _choices(o.type)}
SET_BY_SERVER: Final = frozenset({"submitted_by"})
KEYWORDS: Final = frozenset(OPTIONS) - SET_BY_SERVER

_VARYING: Final = tuple(option for option in OPTIONS.values() if option.form.varies)
_varying_of: Final = attrgetter(*(option.name for option in _VARYING))
_NOTHING_VARIES: Final = _varying_of(JobSpec(task=""))


# What Celery, RQ, Dramatiq, Prefect and others call our options.
ELSEWHERE: Final = {
    "autoretry_for": "retry_on", "countdown": "delay", "depends_on": "after",
    "dont_retry_for": "no_retry_on", "eta": "not_before", "expires": "start_before",
    "job_id": "key", "job_timeout": "timeout", "max_retries": "retries", "queue_name": "queue",
    "retry": "retries", "retry_backoff": "backoff", "retry_delay": "backoff",
    "retry_delay_seconds": "backoff", "run_at": "not_before", "scheduled_at": "not_before",
    "soft_time_limit": "timeout", "tags": "labels", "task_id": "key",
    "task_run_name": "name", "throws": "no_retry_on", "time_limit": "timeout",
    "timeout_seconds": "timeout", "unique_key": "key",
}  # fmt: skip


def canonical_options(
    options: Mapping[str, Any], known: frozenset[str] = KEYWORDS
) -> dict[str, Any]:
    """Returns keywords for `JobSpec` with canonical values; those not in `known` are refused."""
    values: dict[str, Any] = {}
    for name, value in options.items():
        if name not in known:
            listed = f"one of {', '.join(sorted(known))}"
            ours = ELSEWHERE.get(name)
            hint = f"did you mean {ours}?" if ours in known else did_you_mean(name, known)
            raise UnknownName("job option", name, listed, hint)
        if value is not None and name in CHOICES and value not in CHOICES[name]:
            raise InvalidInput(name, f"one of {', '.join(CHOICES[name])}", value)
        canonical = None if value is None else OPTIONS[name].form.canonical(value, name)
        values[name] = OPTIONS[name].default if canonical is None else canonical
    return values


def normalise(spec: JobSpec, field: str = "job") -> JobSpec:
    """Returns the job with durations, times and rates in their canonical forms."""
    given = _varying_of(spec)
    if given == _NOTHING_VARIES:
        return spec
    changes = {}
    for option, value in zip(_VARYING, given, strict=True):
        if value is None:
            continue
        canonical = option.form.canonical(value, f"{field}.{option.name}")
        if canonical is not value:
            changes[option.name] = canonical
    return msgspec.structs.replace(spec, **changes) if changes else spec


MOMENTS: Final = tuple(option.name for option in OPTIONS.values() if option.form is MOMENT)


def counts_from_now(spec: JobSpec) -> bool:
    """Returns whether a job has times that count from its submission."""
    if spec.delay is not None:
        return True
    if spec.not_before is spec.start_before is spec.finish_before is None:
        return False
    return any(isinstance(at := getattr(spec, name), str) and is_relative(at) for name in MOMENTS)


def with_times(spec: JobSpec, now: int) -> JobSpec:
    """Returns a canonical job submitted at `now`, with durations turned into times.

    A job with both `delay` and `not_before` may start after both.
    """
    changes: dict[str, Any] = {}
    for name in MOMENTS:
        moment = getattr(spec, name)
        if moment is not None and is_relative(moment):
            changes[name] = format_moment(now + parse_duration_ms(moment, name))
    if spec.delay is not None:
        start = format_moment(now + (milliseconds(spec.delay) or 0))
        changes["delay"] = None
        changes["not_before"] = max(start, changes.get("not_before") or spec.not_before or start)
    return msgspec.structs.replace(spec, **changes) if changes else spec


class _StoredSpec(JobSpec, frozen=True, forbid_unknown_fields=False):
    """A spec from the store, where a newer version may have written further fields."""


decode_spec: Final[Callable[[bytes], JobSpec]] = msgspec.json.Decoder(_StoredSpec).decode
encode_spec: Final = msgspec.json.Encoder(order="deterministic").encode


def check_labels(labels: Mapping[str, str] | None, field: str) -> None:
    """Raises `InvalidInput` for too many labels, and for labels that are not a name and a text."""
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
