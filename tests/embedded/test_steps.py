"""Durable steps in real processes, with an embedded client."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import windlass
from tests.embedded import step_functions as functions
from tests.support.running import run
from tests.support.waiting import until
from windlass.client.blocking.handles import JobHandle
from windlass.domain.config import Config
from windlass.domain.lifecycle.retries import RetryPolicy
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.tasks.task import Task

CONFIG = Config(retry=RetryPolicy(initial_backoff_ms=10, max_backoff_ms=10))
PATIENCE = 60


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[windlass.Client]:
    path = tmp_path_factory.mktemp("steps") / "jobs.db"
    with windlass.Client.embedded(path, workers=1, config=CONFIG) as opened:
        yield opened


def comes_to(job: JobHandle[Any], state: str) -> None:
    async def is_so() -> bool:
        return job.info().state == state

    run(until(f"job {job.id} is {state}", is_so, PATIENCE))


@pytest.mark.parametrize(
    "function", [functions.killed_after_a_step, functions.killed_after_an_async_step]
)
def test_a_killed_function_continues_after_its_last_step(
    client: windlass.Client, tmp_path: Path, function: windlass.Task[[str], list[str]]
) -> None:
    path = tmp_path / "ran"
    job = client.submit(function, str(path))
    assert job.result(timeout=PATIENCE) == ["first", "second"]
    assert path.read_text().split() == ["first", "second"]
    steps = job.info().steps
    assert [(step.key, step.kind, step.state, step.attempt) for step in steps] == [
        ("first", "call", "done", 1),
        ("second", "call", "done", 2),
    ]


def test_steps_return_what_is_stored_as_annotated(client: windlass.Client) -> None:
    assert client.submit(functions.typed_steps).result(PATIENCE) == "Order 17 ('a', 'b')"


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (functions.the_same_key_twice, (), "the key 'k' was used before in this attempt"),
        (functions.no_json, (), "the result of object to be a JSON value"),
        (functions.an_async_function_in_a_plain_step, ("/dev/null",), "a plain function"),
        (functions.a_file_in_a_step, (), "without files, which disappear with the attempt"),
        (functions.waits_in_vain, (), "nothing came in time: signal never"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_misuse_fails_with_a_clear_message(
    client: windlass.Client, function: Task[..., Any], args: tuple[str, ...], message: str
) -> None:
    job = client.submit(function, *args)
    with pytest.raises(windlass.JobFailed, match=message):
        job.result(PATIENCE)
    assert job.info().attempt == 1


def test_a_waiting_function_holds_no_slot_and_continues_with_its_steps(
    client: windlass.Client, tmp_path: Path
) -> None:
    path = tmp_path / "ran"
    job = client.submit(functions.waits, str(path))
    comes_to(job, "suspended")
    # The only slot is free.
    assert client.submit(functions.swallows_errors).result(PATIENCE).startswith("nothing came")
    assert "waits for signal paid since" in job.explain().summary
    assert job.info().not_before is None
    sent = client.send("paid", {"amount": 3})
    assert (sent.applied, sent.told) == (True, 1)
    assert job.result(PATIENCE) == [{"amount": 3}, "after"]
    assert path.read_text().split() == ["before", "finally", "finally", "after", "finally"]
    info = job.info()
    assert [one.state for one in info.attempts] == ["suspended", "suspended", "completed"]
    assert (info.retry_count, info.lost_count) == (0, 0)
    assert [(step.key, step.kind) for step in info.steps] == [
        ("before", "call"), ("wait_for paid 1", "signal"), ("sleep 1", "sleep"), ("after", "call"),
    ]  # fmt: skip


def test_an_async_function_waits_too_inside_a_task_group(
    client: windlass.Client, tmp_path: Path
) -> None:
    path = tmp_path / "ran"
    job = client.submit(functions.waits_async, str(path))
    comes_to(job, "suspended")
    client.send("paid", 7, key="once")
    assert not client.send("paid", 7, key="once").applied
    assert job.result(PATIENCE) == 7
    assert path.read_text().split() == ["finally"] * 3


def test_each_wait_gets_the_next_signal(client: windlass.Client) -> None:
    job = client.submit(functions.waits_twice)
    client.send("paid", 1)
    client.send("paid", 2)
    assert job.result(PATIENCE) == [1, 2]


@pytest.mark.parametrize("payload", [{1, 2}, (1, 2), [b"x"], {"a": object()}, {1: 2}])
def test_a_signal_that_would_arrive_changed_is_refused(
    client: windlass.Client, payload: object
) -> None:
    with pytest.raises(InvalidInput, match="expected payload"):
        client.send("paid", payload)
    with pytest.raises(windlass.JobFailed, match="expected payload"):
        client.submit(functions.sends_a_set).result(PATIENCE)


def test_a_function_sends_a_signal_once(client: windlass.Client, tmp_path: Path) -> None:
    path = tmp_path / "ran"
    waiting = client.submit(functions.waits_twice)
    comes_to(waiting, "suspended")
    sender = client.submit(functions.sends, str(path))
    assert sender.result(PATIENCE) is None
    assert len(sender.info().attempts) == 2
    assert path.read_text().split() == ["sent"]
    comes_to(waiting, "suspended")
    client.send("paid", "last")
    assert waiting.result(PATIENCE) == [{"by": "job"}, "last"]


def test_people_answer_typed_questions(client: windlass.Client) -> None:
    job = client.submit(functions.asks)
    comes_to(job, "suspended")
    (question,) = client.questions()
    assert (question.job, question.question) == (job.id, "Which order?")
    with pytest.raises(InvalidInput, match=r"answer\.number.*a whole number"):
        client.answer(job.id, {"number": "x", "items": []})
    with pytest.raises(InvalidInput, match=r"a value of the type asked for"):
        client.answer(job.id, object())
    client.answer(job.id, {"number": 4, "items": ["a"]})
    assert job.result(PATIENCE) == "4 ('a',)"
    with pytest.raises(Conflict, match="no open question"):
        client.answer(job.id, {"number": 5, "items": []})
    other = client.submit(functions.asks_async)
    comes_to(other, "suspended")
    assert client.answer(other.id, True, key="ship").key == "ship"
    assert other.result(PATIENCE) is True
    assert client.questions() == []


def test_canceling_reaches_functions_that_wait_block_or_sleep(
    client: windlass.Client, tmp_path: Path
) -> None:
    for function, seen in (
        (functions.blocked_until_canceled, "Canceled\n"),
        (functions.awaits_until_canceled, "CancelledError True\n"),
    ):
        path = tmp_path / function.path.partition(":")[2]
        job = client.submit(function, str(path))

        async def reports(job: JobHandle[None] = job) -> bool:
            return job.info().progress is not None

        run(until("it runs", reports, PATIENCE))
        if function is functions.blocked_until_canceled:
            expected = {"done": 3, "total": 10, "text": "halfway there"}
            assert job.info().progress == expected
        job.cancel()
        assert job.wait(PATIENCE).state == "canceled"
        assert path.read_text() == seen


def test_heartbeats_put_off_the_idle_timeout(client: windlass.Client) -> None:
    assert client.submit(functions.works_silently, True).result(PATIENCE) == "done"
    silent = client.submit(functions.works_silently, False).wait(PATIENCE)
    assert silent.failure is not None
    assert silent.failure.message == "No sign of life for 1 s"


def test_waits_take_a_timedelta_and_end_with_an_error_of_ours(client: windlass.Client) -> None:
    assert client.submit(functions.waits_for_a_moment).result(PATIENCE) == ["WaitTimeout", True]


def test_steps_keep_handles_of_jobs_that_they_submitted(client: windlass.Client) -> None:
    summed = client.submit(functions.children_in_steps).result(PATIENCE)
    assert client.job(summed).result(PATIENCE) == 2 * (1 + 2 + 3)
    doubled = client.jobs(text="step_functions:double")
    assert sorted(job.args["args"] for job in doubled) == [[1], [2], [3]]
    alone = client.submit(functions.children_in_async_steps).result(PATIENCE)
    assert client.job(alone).result(PATIENCE) == 2


@pytest.mark.parametrize("function", [functions.returns_its_child, functions.returns_its_children])
def test_a_handle_of_a_job_is_no_result(
    client: windlass.Client, function: windlass.Task[[], Any]
) -> None:
    with pytest.raises(windlass.JobFailed, match=r"to be a value, got the handle of job \d+; retu"):
        client.submit(function).result(PATIENCE)


@pytest.mark.parametrize(
    ("function", "args", "expected"),
    [
        (functions.asks_its_child, (), [8, 8]),
        (functions.asks_its_child_async, (), 10),
        (functions.gathers, (20,), 380),
        (functions.gathers_async, (3,), 6),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_function_waits_for_its_children_on_one_slot(
    client: windlass.Client, tmp_path: Path, function: Task[..., Any], args: Any, expected: Any
) -> None:
    path = tmp_path / "ran"
    job = client.submit(function, str(path), *args)
    assert job.result(timeout=PATIENCE) == expected
    ran = path.read_text().split("\n")
    assert len([line for line in ran if line.startswith("double")]) == len(set(ran) - {"", "begin"})
    info = job.info()
    assert info.attempts[0].state == "suspended"
    assert "jobs" in [step.kind for step in info.steps]


def test_many_children_end_one_wait(client: windlass.Client, tmp_path: Path) -> None:
    path = tmp_path / "ran"
    job = client.submit(functions.gathers, str(path), 20)
    assert job.result(timeout=PATIENCE) == 380
    assert path.read_text().split("\n").count("begin") == 2


def test_the_failure_of_a_child_is_that_of_its_result(client: windlass.Client) -> None:
    told = client.submit(functions.catches, "no").result(timeout=PATIENCE)
    assert told == ["ValueError", "no", "JobFailed"]
    with pytest.raises(windlass.JobFailed, match="JobFailed"):
        client.submit(functions.lets_it_pass, "no").result(timeout=PATIENCE)


@pytest.mark.parametrize(
    ("function", "args", "message"),
    [
        (functions.forgets_the_step, ("/dev/null",), "was submitted outside of a step"),
        (functions.asks_for_a_large_result, (), "too large to be read inside a job"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_a_function_cannot_wait_for_is_said(
    client: windlass.Client, function: Task[..., Any], args: tuple[str, ...], message: str
) -> None:
    with pytest.raises(windlass.JobFailed, match=message):
        client.submit(function, *args).result(timeout=PATIENCE)


def test_a_wait_for_a_child_may_have_an_end(client: windlass.Client, tmp_path: Path) -> None:
    told = client.submit(functions.gives_up, str(tmp_path / "x")).result(timeout=PATIENCE)
    assert told.startswith("nothing came in time: result of job")
