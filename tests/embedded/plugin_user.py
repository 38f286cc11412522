"""Tests as a user of the plugin writes them; `test_pytest_plugin.py` runs them with pytest."""

import asyncio
import threading
from datetime import timedelta
from typing import Any

import pytest

import windlass as w

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


@w.task(secrets="TOKEN")
def tell() -> str:
    return w.current().secret("TOKEN")


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


CURRENT: list[Any] = []


@pytest.fixture(autouse=True)
def fresh() -> None:
    calls.clear()


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
    windlass.advance("59m")
    assert calls == []
    assert windlass.advance(timedelta(minutes=1)) == 1
    assert calls == ["later"]
    assert windlass.now - began == timedelta(hours=1)


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
    assert tell.submit().result() == "s3cret"
    child = parent.submit().result()
    assert windlass.job(child).result() == 2


def test_timeouts_pass_in_virtual_time(windlass: Any) -> None:
    CURRENT[:] = [windlass]
    job = slow.options(timeout="5m", retries=0).submit(1)
    with pytest.raises(w.JobFailed, match=r"[Tt]imed out|timeout"):
        job.result()


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
