"""`task.submit`, `task.map` and their like: with the default client, and inside a job."""

import asyncio
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pytest

import windlass
from tests.embedded import functions
from windlass.domain.job.forms import Concurrency, RateLimit
from windlass.domain.values.errors import Conflict, InvalidInput


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[windlass.Client]:
    """An embedded client, which is the default one."""
    folder = tmp_path_factory.mktemp("client")
    with windlass.Client.embedded(folder / "jobs.db", workers=2) as made:
        windlass.set_default_client(made)
        yield made
        windlass.set_default_client(None)


def test_a_task_is_submitted_with_the_default_client(client: windlass.Client) -> None:
    job = functions.add.options(queue="batch", name="sum").submit(1, 2)
    assert job.result(timeout=60) == 3
    assert (job.info().queue, job.info().name) == ("batch", "sum")
    assert windlass.default_client() is client
    assert functions.add(1, 2) == 3


def test_a_map_submits_a_job_for_each_set_of_arguments(client: windlass.Client) -> None:
    by_default = functions.add.map([1, 2], [10, 20])
    by_client = client.map(functions.double, range(2))
    assert [job.result(timeout=60) for job in by_default] == [11, 22]
    assert [job.result(timeout=60) for job in by_client] == [0, 2]
    assert functions.add.map([], []) == []
    with pytest.raises(InvalidInput, match="lists of equal length, got 1 and 2"):
        functions.add.map([1], [1, 2])
    with pytest.raises(InvalidInput, match="key to be unset for map"):
        functions.double.options(key="k").map([1, 2])
    with pytest.raises(InvalidInput, match="arguments that"):
        functions.add.map([1])
    with pytest.raises(InvalidInput, match=r"map\[1\]\.args\.left of add to be int"):
        functions.add.map([1, "x"], [2, 3])


def test_limits_are_written_as_on_the_command_line() -> None:
    job = functions.add.options(concurrency="db=2", rate="api=10/1m").job(1, 2)
    assert job.concurrency == Concurrency("db", 2)
    assert job.rate == RateLimit("api", 60.0, 10)


def test_async_code_submits_in_its_own_event_loop(client: windlass.Client) -> None:
    async def scenario() -> tuple[int, list[int], bytes]:
        one = await functions.add.submit_async(1, 2)
        many = await functions.double.map_async([1, 2])
        results = [await job.result(timeout=60) for job in many]
        total = await one.result(timeout=60)
        return total, results, b"".join([chunk async for chunk in one.logs()])

    assert asyncio.run(scenario()) == (3, [2, 4], b"adding 1 2\n")


def test_a_task_by_name_has_the_same_methods(client: windlass.Client) -> None:
    shell = windlass.named("shell")
    first = shell.options(name="first").submit(argv=["echo", "one"])
    second = shell.options(after=first, labels={"a": "b"}).submit(argv=["echo", "two"])
    assert second.wait(timeout=60).after == [first.id]
    assert client.submit(shell, argv=["true"]).wait(timeout=60).state == "completed"
    with pytest.raises(InvalidInput, match="given by name"):
        shell.submit("ls")
    with pytest.raises(InvalidInput, match=r"ids, names or handles of jobs"):
        shell.options(after=[1.5])


@pytest.mark.parametrize("value", [{1, 2}, b"x", date(2026, 1, 31), {1: 2}, object(), Path("x")])
def test_a_task_by_name_takes_plain_json_and_handles_only(value: object) -> None:
    task = windlass.named("mail")
    with pytest.raises(InvalidInput, match=r"expected args\.to\['a'\]\[1\]"):
        task.job(to={"a": [1, value]})
    job = task.job(to=("a", {"$result": 12}), number=1.5)
    assert job.args == {"to": ["a", {"$result": 12}], "number": 1.5}


@pytest.mark.parametrize("kind", ["", "a\nb", "x" * 201, 3])
def test_a_kind_of_work_is_a_name(client: windlass.Client, kind: Any) -> None:
    with pytest.raises(InvalidInput, match="kind"):
        client.submit(functions.add.options(kind=kind), 1, 2)


def test_inside_a_job_a_task_is_submitted_as_a_child(client: windlass.Client) -> None:
    parent = functions.submit_children.submit(2)
    told = parent.result(timeout=60)
    last = client.job(int(str(told["last"]))).wait(timeout=60)
    assert (last.state, last.after) == ("completed", told["ids"])
    assert "was submitted outside of a step" in str(told["refusal"])
    ids = functions.submit_children_async.submit(2).result(timeout=60)
    assert [client.job(job).wait(timeout=60).state for job in ids] == ["completed"] * 3


def test_errors_about_a_single_job_name_its_task_and_no_place_in_a_list(
    client: windlass.Client,
) -> None:
    text: Any = "x"
    shell, add = windlass.named("shell"), functions.add.options(priority="urgent")
    held = functions.add.options(key="one", delay="1h")
    held.submit(1, 2)
    refused: list[tuple[str, Callable[[], object]]] = [
        ("expected args.argv of shell to be a list", lambda: client.submit("shell", argv="ls")),
        ("expected args.argv of shell to be a list", lambda: shell.submit(argv="ls")),
        (
            "expected args.argv of shell to be a list",
            lambda: asyncio.run(shell.submit_async(argv="ls")),
        ),
        ("expected priority of add to be high", lambda: add.submit(1, 2)),
        ("expected args.left of add to be int", lambda: functions.add.submit(text, 2)),
        ("expected the job to be at most", lambda: shell.submit(argv=["x" * 2_000_000])),
        ("key 'one' is used by job", lambda: held.submit(1, 3)),
    ]
    for said, submit in refused:
        with pytest.raises(windlass.WindlassError) as error:
            submit()
        assert str(error.value).startswith(said)
    with pytest.raises(InvalidInput) as single:
        shell.submit(argv="ls")
    assert single.value.field == "args.argv"
    with pytest.raises(InvalidInput, match=r"expected jobs\[1\]\.args\.argv to be a list"):
        client.submit_many([shell.job(argv=["ls"]), shell.job(argv="ls")])


def test_a_default_client_is_made_when_it_is_first_needed(
    client: windlass.Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WINDLASS_DATA", str(tmp_path))
    monkeypatch.delenv("WINDLASS_SERVER", raising=False)
    monkeypatch.delenv("WINDLASS_JOB", raising=False)
    windlass.set_default_client(None)
    try:
        with pytest.raises(windlass.WindlassError, match="start one with `windlass up`"):
            functions.add.submit(1, 2)
        made = windlass.default_client()
        assert made is windlass.default_client() is not client
        made.close()
        with pytest.raises(Conflict, match="client was closed"):
            functions.add.submit(1, 2)
    finally:
        windlass.set_default_client(client)
