"""`Client.embedded(":memory:", immediate=True)`: jobs that run in the caller."""

import asyncio
import os
import threading
from collections.abc import Iterator
from typing import Any

import pytest

import windlass
from tests.embedded import functions
from windlass.assembly.direct_agents import own_agent
from windlass.domain.values.errors import Conflict
from windlass.embedded import node
from windlass.worker.agent.agent import Agent

SEEN: list[tuple[str, int]] = []


@windlass.task
def note(text: str) -> int:
    SEEN.append((text, threading.get_ident()))
    return os.getpid()


@windlass.task(retries=1, backoff={"initial": "10ms"})
def second_time() -> int:
    if windlass.current().attempt == 1:
        raise ValueError("not yet")
    return windlass.current().attempt


@windlass.task
async def note_async(text: str) -> str:
    SEEN.append((text, threading.get_ident()))
    return text


@pytest.fixture(scope="module")
def client() -> Iterator[windlass.Client]:
    with windlass.Client.embedded(":memory:", immediate=True) as made:
        windlass.set_default_client(made)
        yield made
        windlass.set_default_client(None)


def test_a_function_has_run_here_when_it_is_submitted(client: windlass.Client) -> None:
    SEEN.clear()
    job = note.submit("now")
    assert [("now", threading.get_ident())] == SEEN
    assert job.info().state == "completed"
    assert job.result() == os.getpid()
    assert note_async.submit("async").result() == "async"


def test_a_worker_that_starts_late_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    failures = iter([Conflict("late", "the first start fails, and is tried again after a pause")])

    def start_late(*args: Any) -> Agent:
        for failure in failures:
            raise failure
        return own_agent(*args)

    monkeypatch.setattr(node, "own_agent", start_late)
    SEEN.clear()
    with windlass.Client.embedded(":memory:", immediate=True) as late:
        job = late.submit(note, "late")
        assert [text for text, _ in SEEN] == ["late"]
        assert job.info().state == "completed"


@windlass.task
def doubled(number: int) -> int:
    return 2 * number


@windlass.task
def parent() -> int:
    return windlass.step("child", doubled.submit, 4).result()


def test_a_parent_waits_for_its_child(client: windlass.Client) -> None:
    assert parent.submit().result(timeout=60) == 8


def test_large_arguments_arrive(client: windlass.Client) -> None:
    SEEN.clear()
    note.submit("x" * (2 << 20)).result(timeout=60)
    assert [len(text) for text, _ in SEEN] == [2 << 20]


def test_a_job_that_is_held_back_does_not_hold_up_its_submission(client: windlass.Client) -> None:
    SEEN.clear()
    client.queues.pause("batch")
    job = note.options(queue="batch").submit("held")
    assert (job.info().state, SEEN) == ("queued", [])
    client.queues.resume("batch")
    job.result(timeout=60)
    assert [text for text, _ in SEEN] == ["held"]


def test_errors_and_retries_are_as_usual(client: windlass.Client) -> None:
    assert second_time.submit().result(timeout=60) == 2
    with pytest.raises(windlass.JobFailed) as failed:
        functions.fail.submit("no luck").result(timeout=60)
    assert failed.value.exception_type == "ValueError"


def test_jobs_that_wait_run_when_their_time_has_come(client: windlass.Client) -> None:
    SEEN.clear()
    with client.workflow("chain") as chain:
        first = chain.submit(note.options(delay="50ms"), "first")
        chain.submit(note.options(after=first), "second")
    assert SEEN == []
    assert chain.complete(timeout=60).state == "completed"
    assert [text for text, _ in SEEN] == ["first", "second"]


def test_children_run_too_and_code_in_a_loop_may_submit(client: windlass.Client) -> None:
    told = functions.submit_children.submit(2).result(timeout=60)
    assert client.job(int(str(told["last"]))).wait(timeout=60).state == "completed"

    async def scenario() -> list[int]:
        jobs = await functions.double.map_async([1, 2])
        return await windlass.gather_async(*jobs, timeout=60)

    assert asyncio.run(scenario()) == [2, 4]


def test_only_the_memory_store_runs_jobs_in_the_caller() -> None:
    with pytest.raises(windlass.InvalidInput, match=":memory: with immediate"):
        windlass.Client.embedded("jobs.db", immediate=True)
