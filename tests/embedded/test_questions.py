"""Questions with types, and mistakes in functions that wait and report."""

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from typing import Annotated

import pydantic
import pytest

import windlass

PATIENCE = 60


class Even(pydantic.BaseModel):
    """Servers do not know what `multipleOf` means; the model does."""

    number: Annotated[int, pydantic.Field(multiple_of=2)]


@windlass.task
def asks_for_a_model() -> int:
    return windlass.ask("Which?", Even).number


@windlass.task
async def asks_for_a_model_async() -> int:
    return (await windlass.ask_async("Which?", Even)).number


@windlass.task
def catches_everything() -> str:
    try:
        windlass.sleep("1d")
    except BaseException:
        return "went on"
    return "slept"


@windlass.task
async def gathers_exceptions() -> str:
    await asyncio.gather(windlass.sleep_async("1d"), return_exceptions=True)
    return "went on"


@windlass.task
def says_too_much(size: int) -> None:
    windlass.current().progress("x" * size)


@windlass.task
def shows_an_object() -> None:
    windlass.current().progress(0, total=3, text=object())  # type: ignore[arg-type]


@windlass.task
def names_no_step() -> None:
    windlass.step(print, 1)  # type: ignore[arg-type]


@pytest.fixture
def client() -> Iterator[windlass.Client]:
    with windlass.Client.embedded(":memory:", immediate=True) as made:
        yield made


def open_question(client: windlass.Client, job: windlass.JobHandle[int]) -> str:
    """Returns what a job asks, once it has read the answer before."""
    for _ in range(1_000):
        with suppress(windlass.ResultTimeout):
            job.result(timeout=0.05)  # Functions run while somebody waits.
        if found := client.questions():
            return found[0].question
    raise AssertionError("nothing was asked")


@pytest.mark.parametrize("task", [asks_for_a_model, asks_for_a_model_async])
def test_an_answer_that_only_its_type_can_refuse_is_asked_for_again(
    client: windlass.Client, task: windlass.Task[[], int]
) -> None:
    job = client.submit(task)
    with pytest.raises(windlass.InvalidInput, match=r"answer\.number to be a whole number"):
        client.answer(job.id, {"number": "two"})
    client.answer(job.id, {"number": 3})
    question = open_question(client, job)
    assert question.startswith("Which? (expected answer to be Even, got 1 validation err")
    client.answer(job, Even(number=4))
    assert job.result(timeout=PATIENCE) == 4


@pytest.mark.parametrize("task", [catches_everything, gathers_exceptions])
def test_a_function_that_catches_its_wait_and_goes_on_fails(
    client: windlass.Client, task: windlass.Task[[], str]
) -> None:
    with pytest.raises(
        windlass.JobFailed, match=r"caught windlass\.Suspended of 'sleep 1'"
    ) as told:
        client.submit(task).result(timeout=PATIENCE)
    assert "catch Exception, not BaseException" in str(told.value)


def test_progress_that_no_server_takes_is_refused_where_it_is_told(client: windlass.Client) -> None:
    client.submit(says_too_much, 4_094).result(timeout=PATIENCE)
    with pytest.raises(windlass.JobFailed, match="progress to be at most 4,096 bytes as JSON, got"):
        client.submit(says_too_much, 4_095).result(timeout=PATIENCE)
    with pytest.raises(windlass.JobFailed, match="progress to be a JSON value, got Encoding obj"):
        client.submit(shows_an_object).result(timeout=PATIENCE)


def test_a_step_without_a_name_is_answered_with_how_to_write_it(client: windlass.Client) -> None:
    with pytest.raises(windlass.JobFailed, match=r"key to be the name of the step: windlass\.step"):
        client.submit(names_no_step).result(timeout=PATIENCE)


def test_outside_of_jobs_the_message_names_the_call_and_the_way_out() -> None:
    with pytest.raises(windlass.Conflict, match=r"windlass\.sleep was called outside a job"):
        windlass.sleep(1)
    with pytest.raises(windlass.Conflict, match=r"windlass\.wait_for .*: submit the task that"):
        windlass.wait_for("paid")
    with pytest.raises(windlass.Conflict, match=r"outside a job: use client\.send"):
        windlass.send("paid")
