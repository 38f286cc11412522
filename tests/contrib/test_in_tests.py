"""Applications in tests: their jobs go to the fixture, and none reaches a real farm by accident."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.transactions.django_connection import options

WORDS = (
    "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "no:schemathesis",
    "-o", "addopts=",
)  # fmt: skip

TASKS = """
import windlass

@windlass.task
def charge(order: int) -> int:
    return order
"""

GUARDED = """
import os, sqlite3
import pytest
import windlass as w
from shop import charge

def test_a_client_is_refused():
    client = w.Client("http://127.0.0.1:9", "x")  # as an application makes it when it is imported
    for call in (lambda: client.submit(charge, 1), lambda: charge.submit(1), client.jobs):
        with pytest.raises(w.Conflict, match="fixture `windlass`.*WINDLASS_TESTS=real") as told:
            call()
        assert told.value.code == "test_run"
        assert "test_guarded.py::test_a_client_is_refused" in str(told.value)

def test_a_transaction_is_refused(tmp_path):
    connection = sqlite3.connect(tmp_path / "a.db")
    with pytest.raises(w.Conflict, match="WINDLASS_TESTS=real"):
        charge.submit_in(connection, 1)
    connection.close()

def test_an_embedded_client_is_nobodys_farm():
    with w.Client.embedded(":memory:", immediate=True) as client:
        assert client.submit(charge, 7).result() == 7

def test_the_switch_allows_it(monkeypatch):
    monkeypatch.setenv("WINDLASS_TESTS", "real")
    with pytest.raises(w.Unreachable):
        w.Client("http://127.0.0.1:9", "x").submit(charge, 1)

def test_the_fixture_has_what_clients_of_the_application_submit(windlass):
    charge.submit(1)
    assert windlass.drain() == 1
"""

FRAMEWORKS = """
import flask
from fastapi import FastAPI
from fastapi.testclient import TestClient
from shop import charge
from windlass.contrib.fastapi import ClientDep, WindlassLifespan
from windlass.contrib.flask import Windlass

NOWHERE = "http://127.0.0.1:9"

def test_flask(windlass):
    queue = Windlass()
    app = flask.Flask(__name__)
    app.config["WINDLASS_SERVER"] = NOWHERE
    queue.init_app(app)

    @app.post("/charge")
    def start():
        return {"job": queue.submit(charge, 7).id}

    job = app.test_client().post("/charge").json["job"]
    assert windlass.client.job(job).result() == 7

def test_fastapi(windlass):
    app = FastAPI(lifespan=WindlassLifespan(NOWHERE, "x"))

    @app.post("/charge")
    async def start(client: ClientDep) -> dict[str, int]:
        return {"job": (await client.with_options(timeout=1).submit(charge, 7)).id}

    with TestClient(app) as web:
        job = web.post("/charge").json()["job"]
    assert windlass.client.job(job).result() == 7
"""


def _run(folder: Path, environment: dict[str, str], *words: str) -> str:
    done = subprocess.run(
        [sys.executable, *words], cwd=folder, env=environment, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False,
    )  # fmt: skip
    return f"exit {done.returncode}\n{done.stdout}"


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """That of a user, who has set no switch."""
    names = ("WINDLASS_TESTS", "PYTEST_CURRENT_TEST", "WINDLASS_SERVER")
    own = {name: value for name, value in os.environ.items() if name not in names}
    (tmp_path / "shop.py").write_text(TASKS)
    return own | {"WINDLASS_DATA": str(tmp_path / "data"), "PYTHONPATH": str(tmp_path)}


def test_a_test_does_not_reach_a_real_farm_unless_it_is_meant_to(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "test_guarded.py").write_text(GUARDED)
    said = _run(tmp_path, environment, *WORDS, "test_guarded.py")
    assert "5 passed" in said, said


def test_applications_use_the_client_of_the_fixture(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "test_frameworks.py").write_text(FRAMEWORKS)
    said = _run(tmp_path, environment, *WORDS, "test_frameworks.py")
    assert "2 passed" in said, said


SETTINGS = """
SECRET_KEY = "x"
INSTALLED_APPS = ["windlass.contrib.django"]
DATABASES = {{"default": {database}}}
TASKS = {{"default": {{"BACKEND": "windlass.contrib.django.tasks.WindlassBackend", "QUEUES": []}}}}
WINDLASS = {{"SERVER": "http://127.0.0.1:9", "TOKEN": "x"}}
"""

DJANGO = """
import sys
from django.db import transaction
from django.test import TestCase, TransactionTestCase
from shop import charge
from windlass.contrib.django import get_client, submit_in
from windlass.contrib.django.tasks import WindlassBackend
from windlass.contrib.django.test import WindlassTestMixin
from django_tasks import task

@task()
def greet(name):
    return f"hi {name}"

def place(order, fail=False):
    with transaction.atomic():
        job = submit_in(charge, order)
        if fail:
            raise ValueError(order)
    return job

class Plain(TestCase):
    def test_pytest_is_not_needed(self):
        self.assertNotIn("pytest", sys.modules)

    def test_views_that_submit_work_and_run_nothing(self):
        self.assertGreater(place(1).id, 0)
        WindlassBackend("default", {"QUEUES": []}).enqueue(greet, ["ann"], {})

    def test_a_server_is_not_reached(self):
        with self.assertRaisesRegex(Exception, "WINDLASS_TESTS=real"):
            get_client().submit(charge, 1)

class Looks:
    def test_what_is_rolled_back_is_not_submitted(self):
        self.assertEqual(self.windlass.jobs(), [])
        job = place(1)
        with self.assertRaises(ValueError):
            place(2, fail=True)
        self.assertEqual([one.args["args"] for one in self.windlass.jobs()], [[1]])
        self.assertEqual(get_client().job(job.id).result(), 1)

    def test_tasks_of_django_run(self):
        queue = WindlassBackend("default", {"QUEUES": []})
        result = queue.enqueue(greet, ["ann"], {})
        self.windlass.drain()
        self.assertEqual(queue.get_result(result.id).return_value, "hi ann")

class InOneTransaction(WindlassTestMixin, Looks, TestCase):
    pass

class InTheirOwn(WindlassTestMixin, Looks, TransactionTestCase):
    pass
"""


def _play_django(tmp_path: Path, environment: dict[str, str], database: dict[str, Any]) -> str:
    (tmp_path / "settings.py").write_text(SETTINGS.format(database=database))
    (tmp_path / "test_shop.py").write_text(DJANGO)
    own = environment | {"DJANGO_SETTINGS_MODULE": "settings"}
    return _run(tmp_path, own, "-m", "django", "test", "--verbosity", "2")


def test_djangos_runner_on_sqlite(tmp_path: Path, environment: dict[str, str]) -> None:
    database = {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}
    said = _play_django(tmp_path, environment, database)
    assert said.startswith("exit 0"), said
    assert "Ran 7 tests" in said


def test_djangos_runner_on_postgresql(
    tmp_path: Path, environment: dict[str, str], postgres_dsn: str
) -> None:
    said = _play_django(tmp_path, environment, options(postgres_dsn))
    assert said.startswith("exit 0"), said
    assert "Ran 7 tests" in said
