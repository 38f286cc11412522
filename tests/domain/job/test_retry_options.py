"""A job's own options about retries: how they are written, checked and applied."""

import json
from typing import Any

import pytest

from windlass.domain.config import Config
from windlass.domain.job.forms import Backoff, exception_name
from windlass.domain.job.job import JobSpec, canonical_options
from windlass.domain.job.retry_options import policy_of
from windlass.domain.job.validation import Validator
from windlass.domain.lifecycle.retries import RetryPolicy, backoff_ms
from windlass.domain.values.errors import InvalidInput


class OwnError(Exception):
    pass


def made(**options: Any) -> JobSpec:
    return JobSpec(task="python", **canonical_options(options))


def test_python_takes_classes_and_names_alone_or_in_lists() -> None:
    own = f"{__name__}.OwnError"
    assert made(retry_on=OwnError).retry_on == (own,)
    assert made(retry_on="network").retry_on == ("network",)
    assert made(retry_on=[ValueError, "network"]).retry_on == ("ValueError", "network")
    assert made(no_retry_on=json.JSONDecodeError).no_retry_on == ("json.decoder.JSONDecodeError",)
    for bad in (7, int, [3], {"a": 1}):
        with pytest.raises(InvalidInput, match="expected retry_on to be"):
            made(retry_on=bad)


def test_a_class_of_the_program_itself_gets_the_name_that_workers_import_it_by(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(OwnError, "__module__", "__main__")
    name = exception_name(OwnError)
    assert name.endswith(".OwnError")
    assert not name.startswith("__main__")


@pytest.mark.parametrize("field", ["retry_on", "no_retry_on"])
@pytest.mark.parametrize(
    ("names", "message"),
    [
        (("netwrok",), "did you mean network?"),
        (("ValueEror",), "did you mean ValueError?"),
        (("canceled",), "some of execution, worker_lost, timeout"),
        (("a..b",), "exceptions such as ValueError"),
        (("a.<locals>.E",), "exceptions such as ValueError"),
        (("a." + "b" * 200,), "exceptions such as ValueError"),
        (("network",) * 51, "at most 50 failures"),
    ],
)
def test_what_could_never_match_is_refused(
    field: str, names: tuple[str, ...], message: str
) -> None:
    spec = JobSpec(task="python", **{field: names})  # type: ignore[arg-type]
    with pytest.raises(InvalidInput) as refused:
        Validator(Config()).validate(spec)
    assert message in refused.value.message
    assert refused.value.field == f"job.{field}"


def test_programs_raise_no_exceptions() -> None:
    with pytest.raises(InvalidInput, match="some of execution"):
        Validator(Config()).validate(JobSpec(task="shell", retry_on=("ValueError",)))
    Validator(Config()).validate(JobSpec(task="python", retry_on=("ValueError", "a.b.Error")))


@pytest.mark.parametrize(
    ("backoff", "message"),
    [
        ({"initial": "soon"}, "a duration such as"),
        ({"initial": "10s", "max": "5s"}, r"expected backoff.max to be at least backoff.initial"),
        ({"factor": 0.5}, "a number from 1 to 1000"),
        ({"jitter": 2}, "a number from 0 to 1"),
        ({"jitter": float("nan")}, "a number from 0 to 1"),
        ({"first": 2}, "first"),
        ("10s", "backoff"),
    ],
)
def test_a_backoff_that_makes_no_sense_is_refused(backoff: Any, message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        made(backoff=backoff)


def waits(**backoff: Any) -> list[int]:
    policy = policy_of(RetryPolicy(), made(backoff=backoff))
    return [backoff_ms(policy, retry) for retry in range(4)]


def test_a_backoff_of_its_own_replaces_what_it_names() -> None:
    assert waits(initial="1s") == [1_000, 2_000, 4_000, 8_000]
    assert waits(initial="1s", factor=1) == [1_000] * 4
    assert waits(initial="1s", factor=3, max="5s") == [1_000, 3_000, 5_000, 5_000]
    assert waits(max="2s") == [2_000] * 4
    assert waits(initial="1h") == [3_600_000] * 4
    assert waits(initial=0) == [0] * 4
    policy = policy_of(RetryPolicy(), made(backoff={"jitter": 0.5}, retries=7))
    assert (policy.jitter, policy.max_retries) == (0.5, 7)
    assert made(backoff={}).backoff is None
    assert made(backoff=Backoff(initial="1m")).backoff == Backoff(initial=60.0)
