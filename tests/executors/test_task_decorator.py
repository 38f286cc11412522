"""The decorator: a marked function stays what it is, and becomes a job by its path."""

import asyncio

import pytest

from tests.executors import functions
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.tasks.current import current
from windlass.tasks.task import Task, spec_of, task


def test_a_marked_function_is_still_the_function() -> None:
    assert functions.add(1, 2) == 3
    assert asyncio.run(functions.greet("you")) == {"hello": "you"}
    assert isinstance(functions.add, Task)


def test_a_call_becomes_a_job_with_the_options_of_the_mark() -> None:
    job = functions.greet.job("you")
    assert (job.task, job.queue, job.retries, job.timeout) == ("greetings", "batch", 5, 90)
    assert job.requires == ("memory>=1GiB",)
    assert job.args == {"name": "you"}
    plain = functions.add.job(1, right=2)
    assert plain.task == "python"
    assert plain.args == {
        "function": "tests.executors.functions:add",
        "args": [1],
        "kwargs": {"right": 2},
    }
    assert functions.Service.measure.path == "tests.executors.functions:Service.measure"


def test_what_no_worker_could_call_is_refused_at_once() -> None:
    @task
    def local() -> None: ...

    with pytest.raises(InvalidInput, match="workers can import"):
        local.job()
    with pytest.raises(InvalidInput, match="marked with @windlass"):
        spec_of(functions.unmarked, (), {})
    with pytest.raises(InvalidInput, match="missing a required argument"):
        functions.add.job()  # type: ignore[call-arg]


def test_there_is_no_current_job_outside_of_jobs() -> None:
    with pytest.raises(Conflict, match="outside a job"):
        current()
