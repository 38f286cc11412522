"""What `windlass.submit` of plain SQL refuses in the transaction, beside what a server accepts."""

import json
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from tests.transactions.conftest import Queue
from windlass.domain.config import Config
from windlass.domain.job.job import KEYWORDS
from windlass.domain.job.validation import Validator
from windlass.domain.tasks.python import PythonTask
from windlass.domain.tasks.shell import ShellTask
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput
from windlass.messages.jobs import SubmitRequest

VALUES: tuple[Any, ...] = (
    None, True, False, 0, 1, 3, -1, 1.5, 7.0, 1_000, 1_001, 2**70, "", " ", "x", "a b", "0", "7",
    "-3", "+3", "1.5", "high", " Low ", "90s", "2M30S", "1w2d", "500ms", " 15m ", "5 m", "m5",
    "never", "FOREVER", "2030-01-02T03:04:05Z", "2030-01-02T03:04:05+02:00",
    "2030-W01-1T00:00:00+0200", "2030-01-02", "20300102T030405Z", "auto", "manual", "host", "none",
    "process", "container", "always", "missing", "success()", "gpu>=1", [], ["x"], ["gpu>=1"],
    ["execution"], [1], [[]], {}, {"x": "y"}, {"x": 1}, {"x": None}, {"key": "k"},
    {"key": "k", "max": 2}, {"key": "k", "max": 2, "per": "1m"}, {"initial": "1s", "factor": 2},
    {"memory": "1GiB"}, {"argv": ["true"]}, {"argv": []}, {"argv": "true"}, {"function": "a.b:c"},
    {"function": "c"},
)  # fmt: skip


@pytest.fixture(scope="module")
def app(queue: Queue) -> Iterator["psycopg.Connection[Any]"]:
    with psycopg.connect(queue.dsn) as connection:
        connection.execute("SET search_path = windlass")
        yield connection
        connection.rollback()


def refusal(app: "psycopg.Connection[Any]", job: dict[str, Any]) -> str | None:
    """Returns what the database says about a job, None if it takes it."""
    try:
        with app.transaction(force_rollback=True):
            app.execute("SELECT check_submit_job(%s)", [json.dumps(job)])
    except psycopg.Error as error:
        if error.sqlstate != "WL002":
            raise
        return str(error.diag.message_primary)
    return None


def is_accepted(job: dict[str, Any]) -> bool:
    """Returns whether a server takes a job."""
    tasks = {kind.name: kind for kind in (PythonTask(), ShellTask())}
    try:
        (spec,) = convert({"jobs": [job]}, SubmitRequest, "submission").jobs
        Validator(Config(), tasks).validate(spec)
    except InvalidInput:
        return False
    return True


@pytest.mark.parametrize("option", sorted(KEYWORDS - {"task"}))
def test_the_database_refuses_nothing_that_a_server_accepts(
    app: "psycopg.Connection[Any]", option: str
) -> None:
    accepted = 0
    for value in VALUES:
        for task in ("t", "shell", "python") if option == "args" else ("t",):
            job = {"task": task, "after": [1], option: value}
            if is_accepted(job):
                accepted += 1
                assert refusal(app, job) is None, job
    assert accepted, option  # the values are such that every option has one


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"timeout": "soon"}, "expected timeout to be a duration such as 90 (seconds)"),
        ({"timeout": -1}, "expected timeout to be a duration"),
        ({"timeout": ""}, "expected timeout to be a duration"),
        ({"delay": True}, "expected delay to be a duration"),
        ({"retries": -1}, "expected retries to be an integer from 0 to 1000, got -1"),
        ({"retries": 1.5}, "expected retries to be an integer from 0 to 1000, got 1.5"),
        ({"retries": "many"}, "expected retries to be an integer from 0 to 1000, got many"),
        ({"priority": "urgent"}, "expected priority to be high, medium, low or an integer"),
        ({"priority": 10**9}, "expected priority to be high, medium, low or an integer"),
        ({"not_before": "tomorrow"}, "expected not_before to be a time such as"),
        ({"key_for": "ever"}, "2m30s, or forever, got ever"),
        ({"capability_grace": "no"}, "2m30s, or never, got no"),
        ({"unblock": "later"}, "expected unblock to be one of auto, manual, got later"),
        ({"queue": 5}, "expected queue to be printable text of 1 to 200 characters, got 5"),
        ({"queue": None}, "expected queue to be printable text of 1 to 200 characters, got "),
        ({"queue": ""}, "expected queue to be printable text of 1 to 200 characters, got "),
        ({"name": "a\nb"}, "expected name to be printable text of 1 to 200 characters, got a"),
        ({"key": "k" * 201}, "expected key to be printable text of 1 to 200 characters, got kk"),
        ({"namespace": "a\tb"}, "expected namespace to be printable text of 1 to 200 characters"),
        ({"after": 5}, "expected after to be a list of numbers or texts, got 5"),
        ({"requires": [1]}, "expected requires to be a list of texts, got [1]"),
        ({"labels": {"a": 1}}, "expected labels to be an object of texts"),
        ({"backoff": {"facter": 2}}, "expected backoff to be an object with initial, factor, max"),
        ({"args": {"argv": "echo hi"}}, 'a program and its arguments, got "echo hi"'),
        ({"args": {"argv": []}}, "a program and its arguments, got []"),
        ({"args": {"argv": ["sleep", 3]}}, "expected args.argv[1] to be text, got 3"),
        ({"args": {"argv": [None]}}, "expected args.argv[0] to be text, got null"),
        ({"args": {"argv": ["true"], "env": {"A": 1}}}, "expected args.env.A to be text, got 1"),
        ({"args": None}, "a program and its arguments, got nothing"),
        ({"task": "python", "args": {}}, "to be package.module:function, got nothing"),
        ({"task": "python", "args": {"function": "f"}}, "package.module:function, got f"),
    ],
)  # fmt: skip
def test_a_wrong_option_raises_in_the_transaction_in_plain_words(
    app: "psycopg.Connection[Any]", options: dict[str, Any], said: str
) -> None:
    job = {"task": "shell", "args": {"argv": ["true"]}, **options}
    assert not is_accepted(job)
    assert said in str(refusal(app, job))
