"""The door: jobs alike are looked at once, and only jobs alike."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from windlass.domain.config import Config
from windlass.domain.job.job import Concurrency, Door, JobSpec, Prepared
from windlass.domain.values.errors import InvalidInput

# Values that are equal to one another in Python, beside ordinary ones.
FIELDS: dict[str, list[Any]] = {
    "task": ["a", "b", ""],
    "args": [None, {"n": 1}, [1.5], {"a": {"b": []}}],
    "priority": [None, 1, True, 1.0, "high"],
    "namespace": ["default", "team"],
    "queue": ["default", "live", "\x00"],
    "requires": [(), ("memory>=4GiB",), ("cpus>=2", "memory>=4GiB")],
    "resources": [None, {"cpus": 1}, {"cpus": True}, {"cpus": 1.0}],
    "target": [None, "arm64"],
    "allow_failure": [False, True],
    "name": [None, "n"],
    "timeout_ms": [None, 5, True],
}


def outcome(door: Door, spec: JobSpec) -> object:
    """Everything the door says of a job, or why it refuses it."""
    try:
        made: Prepared = door.prepare(spec)
    except InvalidInput as error:
        return error.message
    return made.spec, made.body, made.mould, made.body_digest


# Each job differs from the one before in one field: neighbours are what may be mistaken.
changes = st.sampled_from([(name, value) for name, some in FIELDS.items() for value in some])


@given(st.lists(changes, min_size=2, max_size=12))
@settings(max_examples=500)
def test_what_came_before_makes_no_difference(steps: list[tuple[str, Any]]) -> None:
    door = Door(Config())
    fields: dict[str, Any] = {"task": "a"}
    for name, value in steps:
        fields[name] = value
        spec = JobSpec(**fields)
        assert outcome(door, spec) == outcome(Door(Config()), spec)


def test_jobs_that_differ_in_their_arguments_share_a_mould() -> None:
    first, second, third = Door(Config()).prepare_all(
        [JobSpec(task="t", args=1), JobSpec(task="t", args=2), JobSpec(task="t", queue="live")]
    )
    assert first.mould is second.mould
    assert third.mould is not first.mould
    assert (first.body, second.body) == (b'{"task":"t","args":1}', b'{"task":"t","args":2}')


@pytest.mark.parametrize("args", [float("nan"), "\ud800", "a\x00b", {1: object()}])
def test_a_bad_job_after_good_ones_alike_is_refused(args: object) -> None:
    door = Door(Config())
    door.prepare(JobSpec(task="t", args=1))
    with pytest.raises(InvalidInput):
        door.prepare(JobSpec(task="t", args=args))


def test_a_small_limit_counts_for_small_jobs() -> None:
    door = Door(Config(payload_limit=40))
    door.prepare(JobSpec(task="t", args="a"))
    with pytest.raises(InvalidInput, match="at most 40 bytes"):
        door.prepare(JobSpec(task="t", args="a" * 40))


def test_the_names_of_dependencies_do_not_count_against_the_limit() -> None:
    door = Door(Config(payload_limit=100))
    names = tuple(f"job-{number}" for number in range(100))
    door.prepare(JobSpec(task="t", args="a", after=names, after_any=names))
    with pytest.raises(InvalidInput, match="at most 100 bytes as JSON, got 1"):
        door.prepare(JobSpec(task="t", args="a" * 100, after=names))


@pytest.mark.parametrize("field", ["after", "after_any"])
@pytest.mark.parametrize("wrong", [None, True, 0, -1, 1.5, "own"])
def test_what_is_neither_a_name_nor_an_id_is_refused(field: str, wrong: Any) -> None:
    """Also behind a job that is alike, and among names that are good."""
    door = Door(Config())
    door.prepare(JobSpec(task="t", name="first", after=("a", "b"), after_any=("c",)))
    named: dict[str, Any] = {field: ("a", wrong, "b")}
    with pytest.raises(InvalidInput, match=rf"expected job\.{field} to be"):
        door.prepare(JobSpec(task="t", name="own", **named))


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 201, 3])
def test_a_name_that_is_none_is_refused_behind_good_ones(name: Any) -> None:
    door = Door(Config())
    door.prepare(JobSpec(task="t", name="first"))
    with pytest.raises(InvalidInput, match=r"expected job\.name to be printable text"):
        door.prepare(JobSpec(task="t", name=name))


def test_jobs_with_no_ties_but_names_say_so() -> None:
    """What is behind the names has its default then: others need not look at it again."""
    door = Door(Config())
    named = [JobSpec(task="t"), JobSpec(task="t", name="a"), JobSpec(task="t", after=("a", 3))]
    named += [JobSpec(task="t", after_any=("a",), priority=4), JobSpec(task="t", queue="live")]
    assert all(job.mould.named for job in door.prepare_all(named))
    others: list[dict[str, Any]] = [
        {"key": "k"}, {"workflow": 1}, {"parent": 1}, {"not_before": 5}, {"unblock": "manual"},
        {"labels": {"a": "b"}}, {"capability_grace_ms": 0}, {"allow_failure": True},
        {"finish_before": 9}, {"start_before": 9}, {"concurrency": Concurrency("c")},
    ]  # fmt: skip
    tied = door.prepare_all([JobSpec(task="t", name="a", **fields) for fields in others])
    assert not any(job.mould.named for job in tied)
