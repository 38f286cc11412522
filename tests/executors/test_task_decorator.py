"""The decorator: a marked function stays what it is, and becomes a job by its path."""

import asyncio

import pytest

from tests.executors import functions
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.tasks import current, options_of, path_of, request, task


def test_a_marked_function_is_still_the_function() -> None:
    assert functions.add(1, 2) == 3
    assert asyncio.run(functions.greet("you")) == {"hello": "you"}
    assert options_of(functions.unmarked) is None


def test_a_call_becomes_a_job_with_the_options_of_the_mark() -> None:
    job = request(functions.greet, "you")
    assert (job.task, job.queue, job.retries, job.timeout) == ("greetings", "batch", 5, 90)
    assert job.requires == ("memory>=1GiB",)
    assert job.args == {"name": "you"}
    plain = request(functions.add, 1, right=2)
    assert plain.task == "python"
    assert plain.args == {
        "function": "tests.executors.functions:add",
        "args": [1],
        "kwargs": {"right": 2},
    }
    assert path_of(functions.Service.measure) == "tests.executors.functions:Service.measure"


def test_what_no_worker_could_call_is_refused_at_once() -> None:
    @task
    def local() -> None: ...

    with pytest.raises(InvalidInput, match="workers can import"):
        request(local)
    with pytest.raises(InvalidInput, match="marked with @windlass"):
        request(functions.unmarked)
    with pytest.raises(InvalidInput, match="missing a required argument"):
        request(functions.add)


def test_there_is_no_current_job_outside_of_jobs() -> None:
    with pytest.raises(Conflict, match="outside of a job"):
        current()
