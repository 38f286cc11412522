"""Makes the shape of a job: the options that decide where and when it may run."""

from typing import Any, Final

from windlass.domain.access.secrets import secret_clauses
from windlass.domain.job.job import DEFAULT_NAMESPACE, JobSpec
from windlass.domain.matching.clauses import (
    Clause,
    canonical_needs,
    canonical_requires,
    function_clause,
    mode_clause,
    parse_clause,
    target,
)
from windlass.domain.matching.functions import VERSION_LIMIT, function_key
from windlass.domain.matching.isolation import (
    NETWORKS,
    PULLS,
    Isolation,
    check_choice,
    check_image,
    check_mode,
    demanded,
)
from windlass.domain.matching.shapes import Rate, Shape, check_rate
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import check_name

# Tasks that run no user function, and so have no versions.
NO_FUNCTIONS: Final = frozenset({"ffmpeg", "gstreamer", "media", "shell"})


def asked_function(
    task: str, function: str | None, version: str | None, field: str
) -> tuple[Clause, ...]:
    """Returns the clause for a job's function, if it has one; raises `InvalidInput`.

    A job of a named task asks only for a version: workers list the named tasks they run.
    """
    if version is None:
        return () if function is None else (function_clause(function),)
    where = f"{field}.version"
    check_name(where, version)
    if task in NO_FUNCTIONS:
        raise InvalidInput(where, f"only for Python functions, not for {task} jobs", version)
    if len(version) > VERSION_LIMIT:
        raise InvalidInput(where, f"at most {VERSION_LIMIT} characters", version)
    return (function_clause(function_key(function or task, version)),)


# Tasks that need programs of the worker, which an image may lack.
NOT_CONTAINED: Final = frozenset({"ffmpeg", "gstreamer", "python"})


def build_shape(spec: JobSpec, function: str | None, field: str) -> Shape:
    """Returns the shape of a job that calls this function, if any; raises `InvalidInput`."""
    namespace = DEFAULT_NAMESPACE if spec.namespace is None else spec.namespace
    check_name(f"{field}.task", spec.task)
    check_name(f"{field}.queue", spec.queue)
    check_name(f"{field}.namespace", namespace)
    clauses: list[Any] = list(spec.requires)
    for clause in clauses:
        if not isinstance(clause, str):
            raise InvalidInput(f"{field}.requires", "text such as memory>=4GiB", clause)
    if spec.target is not None:
        check_name(f"{field}.target", spec.target)
        clauses.append(target(spec.target))
    mode = _demanded_mode(spec, field)
    if mode is not None:
        clauses.append(mode_clause(mode))
    clauses += asked_function(spec.task, function, spec.version, field)
    own = () if spec.registry_secret is None else (spec.registry_secret,)
    clauses += secret_clauses((*spec.secrets, *own), namespace, field)
    if spec.apart is not None:
        check_name(f"{field}.apart", spec.apart)
    try:
        requires = canonical_requires(clauses)
        resources = canonical_needs(spec.resources or {})
        prefers = _preferences(spec.prefers)
    except InvalidInput as error:  # These checks do not know which of several jobs they are about.
        where = f"{field}.{error.field}"
        raise InvalidInput(where, error.expected, error.got, error.hint) from None
    return Shape(
        namespace=namespace,
        queue=spec.queue,
        task=spec.task,
        requires=requires,
        resources=resources,
        apart=spec.apart,
        prefers=prefers,
        rate=_rate(spec, f"{field}.rate"),
    )


def _demanded_mode(spec: JobSpec, field: str) -> Isolation | None:
    """Returns the isolation mode that the job demands of workers; checks the options behind it."""
    check_mode(spec.isolation, f"{field}.isolation")
    check_choice(spec.network, NETWORKS, f"{field}.network")
    check_choice(spec.pull, PULLS, f"{field}.pull")
    if spec.image is not None:
        check_image(spec.image, f"{field}.image")
        if spec.task in NOT_CONTAINED:
            raise InvalidInput(f"{field}.image", f"none for a {spec.task} job", spec.image)
    if spec.image is None and spec.isolation == "container":
        raise InvalidInput(f"{field}.image", "given for a job in a container", "nothing")
    return demanded(spec.isolation, spec.network, spec.image)


def _rate(spec: JobSpec, field: str) -> Rate | None:
    if spec.rate is None:
        return None
    check_name(f"{field}.key", spec.rate.key)
    rate = Rate(spec.rate.key, spec.rate.max, round(float(spec.rate.per) * 1000))
    check_rate(rate, field)
    return rate


def _preferences(texts: tuple[Any, ...]) -> tuple[Clause, ...]:
    for text in texts:
        if not isinstance(text, str):
            raise InvalidInput("prefers", "text such as cache:repo==linux", text)
    return canonical_requires([parse_clause(text, "prefers") for text in texts])
