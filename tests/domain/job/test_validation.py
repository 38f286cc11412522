"""Validation: jobs that are alike are looked at once, and only those."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.domain.config import Config
from windlass.domain.job.forms import Concurrency
from windlass.domain.job.job import JobSpec
from windlass.domain.job.validation import ValidatedJob, Validator
from windlass.domain.values.errors import InvalidInput

LATER = "2030-01-01T00:00:00Z"

# Values that are equal to one another in Python, beside ordinary ones.
FIELDS: dict[str, list[Any]] = {
    "task": ["a", "b", ""],
    "args": [None, {"n": 1}, [1.5], {"a": {"b": []}}],
    "priority": [None, 1, True, 1.0, "high"],
    "namespace": [None, "default", "team"],
    "queue": ["default", "live", "\x00"],
    "requires": [(), ("memory>=4GiB",), ("cpus>=2", "memory>=4GiB")],
    "resources": [None, {"cpus": 1}, {"cpus": True}, {"cpus": 1.0}],
    "target": [None, "arm64"],
    "allow_failure": [False, True],
    "name": [None, "n"],
    "timeout": [None, 5, 5.0, "5s", True],
}


def outcome(validator: Validator, spec: JobSpec) -> object:
    """Everything validation says about a job, or why it refuses it."""
    try:
        made: ValidatedJob = validator.validate(spec)
    except InvalidInput as error:
        return error.message
    return made.spec, made.body, made.template, made.body_digest


# Each job differs from the one before in one field: neighbours are what may be mistaken.
changes = st.sampled_from([(name, value) for name, some in FIELDS.items() for value in some])


@given(st.lists(changes, min_size=2, max_size=12))
@settings(max_examples=500)
def test_what_came_before_makes_no_difference(steps: list[tuple[str, Any]]) -> None:
    validator = Validator(Config())
    fields: dict[str, Any] = {"task": "a"}
    for name, value in steps:
        fields[name] = value
        spec = JobSpec(**fields)
        assert outcome(validator, spec) == outcome(Validator(Config()), spec)


def test_jobs_that_differ_in_their_arguments_share_a_template() -> None:
    first, second, third = Validator(Config()).validate_all(
        [JobSpec(task="t", args=1), JobSpec(task="t", args=2), JobSpec(task="t", queue="live")]
    )
    assert first.template is second.template
    assert third.template is not first.template
    assert (first.body, second.body) == (b'{"task":"t","args":1}', b'{"task":"t","args":2}')


@pytest.mark.parametrize("args", [float("nan"), "\ud800", "a\x00b", {1: object()}])
def test_a_bad_job_after_good_ones_alike_is_refused(args: object) -> None:
    validator = Validator(Config())
    validator.validate(JobSpec(task="t", args=1))
    with pytest.raises(InvalidInput):
        validator.validate(JobSpec(task="t", args=args))


def test_a_small_limit_counts_for_small_jobs() -> None:
    validator = Validator(Config(payload_limit=40))
    validator.validate(JobSpec(task="t", args="a"))
    with pytest.raises(InvalidInput, match="at most 40 bytes"):
        validator.validate(JobSpec(task="t", args="a" * 40))


def test_the_names_of_dependencies_do_not_count_against_the_limit() -> None:
    validator = Validator(Config(payload_limit=100))
    names = tuple(f"job-{number}" for number in range(100))
    validator.validate(JobSpec(task="t", args="a", after=names, after_any=names))
    with pytest.raises(
        InvalidInput, match=r"at most 100 bytes as JSON, got 1.*; send large arguments as files"
    ):
        validator.validate(JobSpec(task="t", args="a" * 100, after=names))


@pytest.mark.parametrize("field", ["after", "after_any"])
@pytest.mark.parametrize("wrong", [None, True, 0, -1, 1.5, "own"])
def test_what_is_neither_a_name_nor_an_id_is_refused(field: str, wrong: Any) -> None:
    """Also behind a job that is alike, and among names that are good."""
    validator = Validator(Config())
    validator.validate(JobSpec(task="t", name="first", after=("a", "b"), after_any=("c",)))
    named: dict[str, Any] = {field: ("a", wrong, "b")}
    with pytest.raises(InvalidInput, match=rf"expected job\.{field} to be"):
        validator.validate(JobSpec(task="t", name="own", **named))


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, 3])
def test_a_name_that_is_none_is_refused_behind_good_ones(name: Any) -> None:
    validator = Validator(Config())
    validator.validate(JobSpec(task="t", name="first"))
    with pytest.raises(InvalidInput, match=r"expected job\.name to be printable text"):
        validator.validate(JobSpec(task="t", name=name))


def test_jobs_with_no_ties_but_names_say_so() -> None:
    """What is behind the names has its default then: others need not look at it again."""
    validator = Validator(Config())
    named = [JobSpec(task="t"), JobSpec(task="t", name="a"), JobSpec(task="t", after=("a", 3))]
    named += [JobSpec(task="t", after_any=("a",), priority=4), JobSpec(task="t", queue="live")]
    assert all(job.template.only_named for job in validator.validate_all(named))
    others: list[dict[str, Any]] = [
        {"key": "k"}, {"workflow": 1}, {"parent": 1}, {"not_before": LATER}, {"unblock": "manual"},
        {"labels": {"a": "b"}}, {"capability_grace": 0}, {"allow_failure": True},
        {"finish_before": LATER}, {"start_before": LATER}, {"concurrency": Concurrency("c")},
    ]  # fmt: skip
    tied = validator.validate_all([JobSpec(task="t", name="a", **fields) for fields in others])
    assert not any(job.template.only_named for job in tied)
