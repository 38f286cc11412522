"""Mistakes of people who come from other queues, or mistype: the message says what to write."""

import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import timedelta
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import windlass
from tests.embedded import functions
from windlass.client.calls import Answer
from windlass.client.transport import error_of
from windlass.tasks.submitting import ChildJob

add: Any = functions.add
shell: Any = windlass.named("shell")
task: Any = windlass.task
retry: Any = windlass.Retry


@pytest.fixture
def client() -> Iterator[windlass.Client]:
    with windlass.Client.embedded(":memory:", immediate=True) as made:
        windlass.set_default_client(made)
        yield made
        windlass.set_default_client(None)


def inside() -> Any:
    @windlass.task
    def nested() -> None: ...

    return nested


def at_the_prompt() -> Any:
    def typed() -> None: ...

    typed.__module__, typed.__qualname__ = "__main__", "typed"
    return windlass.task(typed)


class Shop:
    @windlass.task
    def order(self, number: int) -> int:
        return number


shop: Any = Shop()


def count() -> Iterator[int]:
    yield 1


async def count_later() -> AsyncIterator[int]:
    yield 1


@windlass.task
def written_as_text(left: "Number", /, *, by: "int" = 1) -> int:
    return left + by


Number = int
written: Any = written_as_text


@windlass.task
def complain(length: int) -> None:
    raise ValueError("x" * length)


@windlass.task
def end_by(how: str) -> None:
    if how == "exit":
        sys.exit(3)
    raise windlass.Abort("no") if how == "abort" else ValueError("no")


@windlass.task
def awkward(self: int, cls: int, args: int, kwargs: int, task: int) -> list[int]:
    return [self, cls, args, kwargs, task]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (add.submit, "missing a required argument: 'left'; it takes (left: int, right:"),
        (lambda: add.submit(1, 2, 3), "takes; too many positional arguments; it takes (left"),
        (lambda: add.submit(1, 2, retries=3), "go into `options`: .options(retries=…).submit(…)"),
        (lambda: add.options(countdown=3), "unknown job option countdown; did you mean delay?"),
        (lambda: add.options(max_retries=3), "; did you mean retries?"),
        (lambda: task(max_retries=3), "; did you mean retries?"),
        (
            lambda: task("mail"),
            "task to be a function; options have names: @windlass.task(name=…, ",
        ),
        (
            lambda: task(partial(print, 1)),
            "a function with a name of its own, got functools.partial",
        ),
        (lambda: task(Shop), "a name of its own, got <class"),
        (lambda: task(count), "got a generator: <function count"),
        (lambda: task(count_later), "; return a list, or submit a job for each value"),
        (lambda: task(queue="other")(add), "is not a task yet, got <task"),
        (
            lambda: add.submit(1, 2, rihgt=2),
            "; got an unexpected keyword argument 'rihgt'; it takes (",
        ),
        (written.submit, "it takes (left: Number, /, *, by: int = 1)"),
        (lambda: task(task_id="a"), "unknown job option task_id"),
        (lambda: add.options(timeout="5 minuets"), "expected timeout to be a duration such as"),
        (lambda: add.options(unblock="maybe"), "unblock to be one of auto, manual, got maybe"),
        (lambda: task(network="lan"), "expected network to be one of host, none, got lan"),
        (lambda: add.options(rate="5/s"), "rate to be KEY=MAX/TIME, such as api=10/1m, got 5/s"),
        (lambda: add.map(1), "expected map to be given a list for each argument, got 1"),
        (lambda: shell.submit("ls"), "expected args of shell to be given by name, got"),
        (lambda: inside().submit(), "; define it with `def` at the top of a module, not as a"),
        (lambda: windlass.task(lambda: 1).submit(), "not as a lambda or inside a function"),
        (
            lambda: retry(60),
            "expected message to be text; `after=60` says how long to wait, got 60",
        ),
        (lambda: shop.order.submit(1), "; jobs call no methods: put @staticmethod above @windl"),
        (lambda: functions.count_up.submit(3).result(), "; make a list of it"),
    ],
)
def test_a_mistake_is_answered_with_what_to_write(
    client: windlass.Client, call: Callable[[], object], said: str
) -> None:
    with pytest.raises(windlass.WindlassError) as refused:
        call()
    assert said in str(refused.value)


def test_a_misspelt_option_of_a_workflow_is_answered_with_the_right_one(
    client: windlass.Client,
) -> None:
    misspelt: dict[str, Any] = {"kee": "k"}
    with pytest.raises(windlass.UnknownName, match=r"workflow option kee; did you mean key\?"):
        client.workflow("w", **misspelt)


def test_durations_of_workflows_and_events_are_those_of_jobs(client: windlass.Client) -> None:
    hour = timedelta(hours=1)
    with client.workflow("w", key="k", key_for=hour) as first:
        first.submit(functions.add, 1, 2)
    first.complete(timeout=60)
    with client.workflow("w", key="k", key_for=hour) as second:
        second.submit(functions.add, 1, 2)
    assert second.id == first.id
    assert [event.kind for event in client.events(since=hour, last=1)]


def test_a_failure_is_shown_in_short(client: windlass.Client) -> None:
    with pytest.raises(windlass.JobFailed) as failed:
        client.submit(complain, 5_000).result(timeout=60)
    assert len(str(failed.value)) > 1_000
    assert len(repr(failed.value)) < 300


def test_the_traceback_of_a_failure_begins_in_the_function(client: windlass.Client) -> None:
    for how in ("exit", "abort", "raise"):
        with pytest.raises(windlass.JobFailed) as failed:
            client.submit(end_by, how).result(timeout=60)
        traceback = str(failed.value.traceback)
        assert traceback.count("  File ") == 1
        assert "in end_by" in traceback


def test_parameters_may_have_any_name(client: windlass.Client) -> None:
    given = {"self": 1, "cls": 2, "args": 3, "kwargs": 4, "task": 5}
    named: Any = awkward
    assert named(**given) == [1, 2, 3, 4, 5]
    assert named.submit(**given).result() == [1, 2, 3, 4, 5]
    assert client.submit(named, **given).result() == [1, 2, 3, 4, 5]
    assert windlass.named("shell").job(self=1, argv=["true"]).args == {"self": 1, "argv": ["true"]}


def test_a_function_at_the_prompt_or_in_a_notebook_is_answered_with_where_to_put_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("__main__", "__mp_main__"):  # as `multiprocessing` calls it too
        monkeypatch.setitem(sys.modules, name, ModuleType("__main__"))
    with pytest.raises(windlass.InvalidInput, match=r"notebook or script into a module such as"):
        at_the_prompt().submit()


def test_a_client_in_a_job_is_answered_with_what_jobs_use(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("WINDLASS_DATA", str(tmp_path))
    monkeypatch.delenv("WINDLASS_SERVER", raising=False)
    monkeypatch.delenv("WINDLASS_JOB", raising=False)
    with pytest.raises(windlass.Unreachable, match="start one with `windlass up`"):
        windlass.Client().jobs()
    monkeypatch.setenv("WINDLASS_JOB", "7")
    with pytest.raises(windlass.Unreachable, match=r"use task\.submit and windlass\.send in it"):
        windlass.Client().jobs()
    child: Any = ChildJob(7)
    with pytest.raises(windlass.WindlassError, match=r"was submitted outside of a step"):
        windlass.gather(child)


def test_jobs_are_given_by_id_or_handle_and_in_lists(client: windlass.Client) -> None:
    jobs = client.submit_many(add.options(delay="1h").job(n, 1) for n in range(3))
    assert [one.applied for one in client.cancel([jobs[0], jobs[1].id]).jobs] == [True, True]
    assert client.explain(jobs[2]).job == client.explain(jobs[2].id).job == jobs[2].id
    assert [one.applied for one in client.delete(jobs[:2]).jobs] == [True, True]
    either: Any = client
    with pytest.raises(windlass.InvalidInput, match=r"jobs to be a list of ids or handles of jo"):
        either.cancel(jobs[2])
    with pytest.raises(windlass.InvalidInput, match=r"the id or the handle of a job, got '7'"):
        either.answer("7", True)
    with pytest.raises(windlass.InvalidInput, match=r"jobs\[0\] .*; describe the call: task\.job"):
        either.submit_many([add])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("delay", "a task has no delay; use `submit(…)`"),
        ("apply_async", "a task has no apply_async; use `options(…).submit(…)`"),
        ("colour", "a task has no colour"),
    ],
)
def test_methods_of_other_queues_are_answered_with_ours(name: str, said: str) -> None:
    for asked in (add, shell):
        with pytest.raises(AttributeError) as missing:
            getattr(asked, name)
        assert str(missing.value) == said
        assert not hasattr(asked, name)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("get", "the handle of a job has no get; use `job.result(timeout=…)`"),
        ("status", "the handle of a job has no status; use `job.info().state`"),
        ("ready", "the handle of a job has no ready; use `job.info().state`"),
        ("colour", "the handle of a job has no colour"),
    ],
)
def test_handles_of_other_queues_are_answered_with_ours(
    client: windlass.Client, name: str, said: str
) -> None:
    job = client.submit(add, 1, 2)
    for asked in (job, job.asynchronous):
        with pytest.raises(AttributeError) as missing:
            getattr(asked, name)
        assert str(missing.value) == said
        assert not hasattr(asked, name)


def test_what_only_servers_have_is_refused_with_the_reason(client: windlass.Client) -> None:
    calls = client.asynchronous.service.transport
    for path in ("/healthz", "/auth/ways", "/api/v1/live"):
        with pytest.raises(windlass.Conflict, match=rf"^only a server answers GET {path}: start"):
            client.run(calls.call("GET", path, object))


def test_a_wrong_token_is_answered_with_where_to_put_another() -> None:
    body = b'{"error": {"code": "unauthorized", "message": "this needs a valid token: Bearer"}}'
    refused = error_of(Answer(401, body))
    assert str(refused).endswith("; pass one as `token`, or set WINDLASS_TOKEN")
