"""Tests as a user of the plugin writes them; `test_pytest_plugin.py` runs them with pytest."""

import asyncio
import os
import sys
import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import windlass as w
from windlass.client.settings import server_address

calls: list[str] = []


@w.task
def add(left: int, right: int) -> int:
    return left + right


@w.task
async def double(value: int) -> int:
    assert asyncio.get_running_loop().is_running()
    return 2 * value


@w.task(retries=2)
def flaky() -> int:
    calls.append("tried")
    if len(calls) < 3:
        raise ValueError("no luck yet")
    return len(calls)


@w.task
def remember(text: str) -> None:
    calls.append(text)


@w.task
def parent() -> int:
    child = w.current().submit(add, 1, 1)
    return child if isinstance(child, int) else 0


@w.task
def waiting_parent(values: list[int]) -> list[int]:
    return w.gather(*w.step("children", double.map, values))


@w.task(secrets="TOKEN")
def tell() -> str:
    calls.append(w.current().secret("TOKEN"))
    return calls[-1]


@w.task
def where() -> bool:
    return threading.current_thread() is threading.main_thread()


@w.task
def slow(fixture: int) -> str:
    assert fixture == 1
    CURRENT[0].advance("10m")
    return "late"


@w.task
def patient() -> int:
    first = w.step("first", lambda: len(calls))
    calls.append("slept")
    w.sleep("1d")
    return int(first)


@w.task(secrets="TOKEN")
def report(lines: int) -> Path:
    sys.stdout.write(f"writing {lines} lines with {w.current().secret('TOKEN')}\n")
    file = w.current().scratch / "report.txt"
    file.write_text("line\n" * lines)
    return file


@w.task
def count(file: Path) -> int:
    return len(file.read_text().splitlines())


@w.task
def outer() -> None:
    sys.stdout.write("outer begins\n")
    CURRENT[0].submit(remember_aloud).result()
    sys.stdout.write("outer ends\n")


@w.task
def remember_aloud() -> None:
    sys.stdout.write("inner\n")
    raise ValueError("told in the log")


CURRENT: list[Any] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    calls.clear()


@w.task
def variable(name: str) -> str | None:
    return os.environ.get(name)


def test_results_and_the_default_client(windlass: Any) -> None:
    assert windlass.submit(add, 1, 2).result() == 3
    assert add.submit(20, 22).result(timeout=1) == 42
    assert double.submit(4).result() == 8
    assert where.submit().result() is True
    assert windlass.submit("shell", argv=["true"]).wait().state == "completed"


def test_drain_and_patches(windlass: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = [remember.submit("a"), remember.submit("b")]
    assert calls == []
    monkeypatch.setattr("builtins.len", len)
    assert windlass.drain() == 2
    assert calls == ["a", "b"]
    assert [job.info().state for job in jobs] == ["completed", "completed"]
    assert windlass.drain() == 0


def test_delays(windlass: Any) -> None:
    began = windlass.now
    job = remember.options(delay="1h").submit("later")
    with pytest.raises(TimeoutError, match="its start time"):
        job.result(timeout=5)
    with pytest.raises(w.WaitTimeout, match=f"job {job.id} does not end before time passes"):
        job.result()
    with windlass.workflow("later") as later:
        later.submit(remember.options(delay="2h"), "last")
    with pytest.raises(w.WaitTimeout, match="does not end before time passes"):
        later.complete()
    windlass.advance("59m")
    assert calls == []
    assert windlass.advance(timedelta(minutes=1)) == 1
    assert calls == ["later"]
    assert windlass.now - began == timedelta(hours=1)


def test_waiting_for_many(windlass: Any) -> None:
    jobs = windlass.map(add, [1, 2, 3], [4, 5, 6])
    assert w.gather(*jobs) == [5, 7, 9]
    late = windlass.submit(add.options(delay="1h"), 1, 2)
    with pytest.raises(w.WaitTimeout, match=f"job {late.id} does not end before time passes"):
        w.gather(*jobs, late, timeout=60)
    ends = w.as_completed([late, *jobs])
    assert sorted(next(ends).id for _ in jobs) == [job.id for job in jobs]
    with pytest.raises(TimeoutError, match="its start time"):
        next(ends)
    windlass.advance("1h")
    assert w.gather(late, *jobs) == [3, 5, 7, 9]


def test_retries(windlass: Any) -> None:
    job = flaky.submit()
    windlass.drain()
    assert len(calls) == 1
    windlass.advance("5m")
    assert job.result() == 3


def test_failures(windlass: Any) -> None:
    job = windlass.submit(flaky.options(retries=0))
    with pytest.raises(w.JobFailed, match="no luck yet"):
        job.result()


def test_children_secrets_and_workflows(windlass: Any) -> None:
    windlass.secrets["TOKEN"] = "s3cret"
    assert tell.submit().result() == "***"  # as on workers
    assert calls == ["s3cret"]
    child = parent.submit().result()
    assert windlass.job(child).result() == 2


def test_timeouts_pass_in_virtual_time(windlass: Any) -> None:
    CURRENT[:] = [windlass]
    for timeout in ("5m", "599s"):
        job = slow.options(timeout=timeout).submit(1)
        with pytest.raises(w.JobFailed, match="Timed out after") as failed:
            job.result()
        failure = failed.value.job.failure
        assert failure is not None
        assert failure.kind == "timeout"
    assert slow.options(timeout="10m").submit(1).result() == "late"


def test_what_nobody_offers_waits(windlass: Any) -> None:
    job = remember.options(requires="gpus>=2").submit("gpu")
    assert windlass.drain() == 0
    windlass.metadata["system:gpus"] = 2
    assert windlass.drain() == 1
    assert job.info().state == "completed"


def test_steps_and_sleep(windlass: Any) -> None:
    job = patient.submit()
    windlass.advance("23h")
    assert job.info().state != "completed"
    windlass.advance("1h")
    assert job.result() == 0
    assert calls == ["slept", "slept"]


def test_logs_and_artifacts(windlass: Any, capsys: pytest.CaptureFixture[str]) -> None:
    windlass.secrets["TOKEN"] = "s3cret"
    job = report.submit(3)
    assert count.submit(job.output).result() == 3
    assert b"".join(job.logs()) == b"writing 3 lines with ***\n"
    assert capsys.readouterr().out == "writing 3 lines with s3cret\n"
    assert [artifact.name for artifact in job.info().artifacts] == ["report.txt"]
    assert job.result().read_text() == "line\n" * 3
    words = ["sh", "-c", "cat; echo $WHO > made.txt; echo v=2 > $WINDLASS_OUTPUTS"]
    shell = windlass.submit(
        "shell", argv=words, stdin="hello", env={"WHO": "me"}, artifacts=["*.txt"], outputs=["v"]
    )
    assert shell.result() == {"v": "2"}
    assert b"".join(shell.logs()) == b"hello"
    assert [artifact.name for artifact in shell.info().artifacts] == ["made.txt"]


def test_logs_of_jobs_inside_each_other(windlass: Any) -> None:
    CURRENT[:] = [windlass]
    job = outer.submit()
    windlass.drain()
    inner = windlass.jobs(state="failed")
    said = [b"".join(windlass.job(row.id).logs()) for row in inner]
    assert b"".join(job.logs()).startswith(b"outer begins\n")
    assert b"inner" not in b"".join(job.logs()).split(b"Traceback")[0]
    assert any(text.startswith(b"inner\n") and b"told in the log" in text for text in said)


def test_a_parent_waits_for_its_children(windlass: Any) -> None:
    assert waiting_parent.submit([1, 2, 3]).result() == [2, 4, 6]


def test_large_arguments_arrive(windlass: Any) -> None:
    calls.clear()
    remember.submit("x" * (2 << 20)).result()
    assert [len(text) for text in calls] == [2 << 20]


def test_schedules_start_their_slots(windlass: Any) -> None:
    windlass.templates.put("mail", {"name": "mail", "jobs": {"send": {"run": ["true"]}}})
    windlass.schedules.put("nightly", cron="0 3 * * *", template="mail")
    assert windlass.advance("1d") == 1
    assert windlass.advance("2d") == 2
    windlass.schedules.pause("nightly")  # Else 3 h from now may include a slot of it.
    windlass.schedules.put("beat", every="90m", template="mail")
    assert windlass.advance("3h") == 2
    assert [job.state for job in windlass.jobs()] == ["completed"] * 5


def test_async_code_waits_for_jobs_that_run_meanwhile(windlass: Any) -> None:
    async def view() -> list[Any]:
        one = await add.submit_async(1, 2)
        many = await double.map_async([1, 2])
        here = await where.submit_async()
        return [await one.result(), await w.gather_async(*many), await here.result()]

    assert asyncio.run(view()) == [3, [2, 4], True]
    assert windlass.drain() == 0


def test_the_variables_of_a_job_end_with_it(
    windlass: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A client made after it is not told that it is inside a job."""
    job = variable.submit("WINDLASS_JOB")
    assert (job.result(), variable("WINDLASS_JOB")) == (str(job.id), None)
    for name in ("WINDLASS_SERVER", "WINDLASS_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(w.Unreachable, match="none runs from"):
        server_address(data=tmp_path)
