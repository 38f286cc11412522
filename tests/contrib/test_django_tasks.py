"""The backend for Django's tasks: what a task says becomes options of its job."""

import dataclasses
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings

import windlass
from windlass.client.spool import SpoolFolder
from windlass.domain.values.errors import InvalidInput, WindlassError

if not settings.configured:
    settings.configure(
        USE_TZ=True,
        DATABASES={"default": {"ENGINE": "django.db.backends.dummy"}},
        TASKS={"default": {"BACKEND": "django_tasks.backends.dummy.DummyBackend", "QUEUES": []}},
    )

from django_tasks import TaskResultStatus, task
from django_tasks.exceptions import InvalidTaskError, TaskResultDoesNotExist

from windlass.contrib.django import submitting
from windlass.contrib.django import tasks as contrib
from windlass.contrib.django.tasks import WindlassBackend

LATER = datetime(2060, 1, 2, tzinfo=UTC)


@task()
def mail(to: str) -> str:
    return to


@task()
def fail(to: str) -> None:
    raise KeyError(to)


@task()
def look(context: object) -> None:
    del context


@pytest.fixture
def client(monkeypatch: pytest.MonkeyPatch) -> Iterator[windlass.Client]:
    with windlass.Client.embedded(":memory:", workers=0) as made:
        monkeypatch.setattr(contrib, "get_client", lambda: made)
        yield made


def backend(**options: Any) -> WindlassBackend:
    params = {"QUEUES": [], "OPTIONS": {"transactional": False, **options}}
    return WindlassBackend("default", params)


def test_queue_priority_time_and_name_are_those_of_the_task(client: windlass.Client) -> None:
    planned = mail.using(queue_name="slow", priority=7, run_after=LATER)
    result = backend().enqueue(planned, ["ann"], {})
    job = client.job(int(result.id)).info()
    assert (job.queue, job.priority.base, job.name) == ("slow", 7, "mail")
    assert job.not_before == "2060-01-02T00:00:00.000Z"
    assert (job.args["args"], job.args["path"]) == (["ann"], f"{__name__}.mail")
    plain = client.job(int(backend().enqueue(mail, ["bob"], {}).id)).info()
    assert (plain.queue, plain.not_before) == ("default", None)


def test_options_of_the_settings_are_those_of_all_jobs(client: windlass.Client) -> None:
    made = backend(job={"retries": 2, "timeout": "5m"}).enqueue(mail, ["ann"], {})
    job = client.job(int(made.id)).info()
    assert (job.retries, job.timeout) == (2, 300)
    with pytest.raises(WindlassError, match="did you mean retries"):
        backend(job={"retrys": 2})


def test_a_result_is_that_of_a_task_and_not_of_any_job(client: windlass.Client) -> None:
    queue = backend()
    enqueued = queue.enqueue(mail, ["ann"], {})
    found = queue.get_result(enqueued.id)
    assert (found.task.func, found.args, found.status) == (
        mail.func, ["ann"], TaskResultStatus.READY,
    )  # fmt: skip
    client.job(int(enqueued.id)).cancel()
    ended = queue.get_result(enqueued.id)
    assert ended.status == TaskResultStatus.FAILED
    assert "Canceled" in ended.errors[0].traceback
    other = client.submit("shell", argv=["true"])
    for wrong in (str(other.id), "99999", "no number"):
        with pytest.raises(TaskResultDoesNotExist):
            queue.get_result(wrong)


def test_a_task_that_takes_a_context_is_refused(client: windlass.Client) -> None:
    taking = dataclasses.replace(look, takes_context=True)
    with pytest.raises(InvalidTaskError, match=r"windlass\.current"):
        backend().enqueue(taking, [], {})
    assert client.jobs() == []


def test_without_the_option_it_is_submitted_in_the_transaction(client: windlass.Client) -> None:
    with pytest.raises(InvalidInput, match="a connection to PostgreSQL or SQLite"):
        WindlassBackend("default", {"QUEUES": []}).enqueue(mail, ["ann"], {})
    assert client.jobs() == []


def test_its_exception_and_the_workers_that_tried_it_are_told(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with windlass.Client.embedded(":memory:", immediate=True) as made:
        monkeypatch.setattr(contrib, "get_client", lambda: made)
        queue = backend()
        sent, failed = queue.enqueue(mail, ["ann"], {}), queue.enqueue(fail, ["ann"], {})
        for job in (sent, failed):
            made.job(int(job.id)).wait(timeout=60)
        assert queue.get_result(sent.id).return_value == "ann"
        (worker,) = made.workers.list()
        found = queue.get_result(failed.id)
        assert found.worker_ids == [worker.name]
        assert found.errors[0].exception_class is KeyError
        assert "in fail" in found.errors[0].traceback


def test_with_a_spool_in_the_settings_jobs_wait_but_tasks_which_need_an_id_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        nobody = f"http://127.0.0.1:{server.getsockname()[1]}"
    given = {"SERVER": nobody, "TOKEN": "t", "TIMEOUT": "1s", "SPOOL": str(tmp_path / "spool")}
    monkeypatch.setattr(settings, "WINDLASS", given, raising=False)
    submitting._own_client.cache_clear()
    with submitting.get_client() as own:
        with pytest.raises(windlass.Unreachable):
            backend().enqueue(mail, ["ann"], {})
        with pytest.raises(windlass.Conflict, match="it has no id yet"):
            _ = own.submit("shell", argv=["true"]).id
        assert SpoolFolder(tmp_path / "spool").outcome(1) is None
        assert "settled" in str(SpoolFolder(tmp_path / "spool").outcome(2))
    submitting._own_client.cache_clear()
