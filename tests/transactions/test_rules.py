"""What is refused inside the transaction, what after it, and who may submit at all."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

import windlass
from tests.support.postgres import PostgresServer
from tests.support.running import run
from tests.support.waiting import until
from tests.transactions.conftest import Queue
from tests.transactions.functions import add, read_file, wait_for_it
from windlass import JobSpec
from windlass.cli.app import run_command
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.messages.jobs import NewWorkflow

ECHO = {"task": "shell", "args": {"argv": ["true"]}}


@pytest.fixture
def app(queue: Queue) -> Iterator["psycopg.Connection[Any]"]:
    """The application's connection, in a transaction that is rolled back in the end."""
    with psycopg.connect(queue.dsn) as connection:
        yield connection
        connection.rollback()


def committed(queue: Queue, text: str, role: str | None = None) -> Any:
    """Runs one statement and commits."""
    dsn = queue.dsn if role is None else queue.dsn.replace("windlass@", f"{role}@")
    with psycopg.connect(dsn) as connection:
        cursor = connection.execute(text.encode())
        row = cursor.fetchone() if cursor.description else None
        return None if row is None else row[0]


@pytest.mark.parametrize(
    ("job", "field"),
    [
        (JobSpec(task="shell", args={}), "args"),
        (JobSpec(task="t", retries=-1), "retries"),
        (JobSpec(task="t", priority=101), "priority"),
        (JobSpec(task="t", after=(987_654,)), "after"),
        (JobSpec(task="t", parent=987_654), "parent"),
        (JobSpec(task="t", workflow=987_654), "workflow"),
        (JobSpec(task="t", submitted_by="me"), "submitted_by"),
        (JobSpec(task="t", args="x" * 2_000_000), "args"),
    ],
)
def test_bad_input_raises_inside_the_transaction(
    app: "psycopg.Connection[Any]", job: JobSpec, field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        windlass.submit_in(app, job)
    assert refused.value.field.startswith(field)


@pytest.mark.parametrize(
    "text",
    [
        "no json",
        "[]",
        '{"args": {}}',
        json.dumps({**ECHO, "colour": "red"}),
        json.dumps({**ECHO, "submitted_by": "root"}),
        json.dumps({**ECHO, "after": [987_654]}),
    ],
)
def test_the_sql_function_raises_for_what_is_no_job(
    app: "psycopg.Connection[Any]", text: str
) -> None:
    with pytest.raises(psycopg.Error):
        app.execute("SELECT windlass.submit(%s)", [text])


def test_what_is_too_deep_is_refused_in_the_users_own_transaction(
    app: "psycopg.Connection[Any]",
) -> None:
    def nested(levels: int) -> dict[str, Any]:
        value: Any = "[[[ ]" * 50  # brackets inside texts do not count
        for _ in range(levels):
            value = [value]
        return {**ECHO, "args": {"argv": ["echo"], "env": {}, "function": value}}

    with pytest.raises(psycopg.Error, match="at most 100 lists and objects inside one another"):
        app.execute("SELECT windlass.submit(%s)", [json.dumps(nested(200))])
    app.rollback()
    with pytest.raises(InvalidInput, match="at most 100 lists and objects inside one another"):
        windlass.submit_in(app, JobSpec(task="shell", args=nested(200)["args"]))
    job = JobSpec(task="python", args={"function": "a:b", "args": [nested(90)["args"]["function"]]})
    assert windlass.submit_in(app, job).id


def test_what_only_a_server_can_refuse_becomes_a_rejected_job_with_the_reason(
    queue: Queue,
) -> None:
    text = json.dumps({**ECHO, "requires": ["memory>=lots"]})
    job = committed(queue, f"SELECT windlass.submit('{text}')")
    shown = queue.client.job(job).info()
    assert shown.state == "rejected"
    assert "a size such as" in str(shown.reason)
    assert shown.labels == {"task": "shell"}


def test_the_handle_of_a_client_works_after_the_commit(queue: Queue) -> None:
    with psycopg.connect(queue.dsn) as connection:
        job = queue.client.submit_in(connection, add.options(name="sum"), 1, b=2)
        assert not queue.job_exists(job.id)
    assert job.result(timeout=60) == 3
    assert job.info().name == "sum"


def test_a_savepoint_that_is_rolled_back_takes_its_job_with_it(queue: Queue) -> None:
    with psycopg.connect(queue.dsn) as connection:
        kept = add.submit_in(connection, 1, 2)
        with connection.transaction():
            gone = add.submit_in(connection, 3, 4)
            raise psycopg.Rollback
    assert queue.client.job(kept.id).result(timeout=60) == 3
    assert not queue.job_exists(gone.id)


def test_a_job_may_wait_for_another_of_its_transaction(queue: Queue) -> None:
    with psycopg.connect(queue.dsn) as connection:
        first = add.submit_in(connection, 1, 2)
        second = add.options(after=[first.id]).submit_in(connection, 3, 4)
    assert queue.client.job(second.id).result(timeout=60) == 7
    assert queue.client.job(second.id).info().after == [first.id]


def test_a_workflow_is_submitted_as_a_whole(queue: Queue) -> None:
    # The second job comes first: ids ascend in the order of dependencies.
    jobs = [
        msgspec.structs.replace(add.job(3, 4), name="last", after=("first",)),
        msgspec.structs.replace(add.job(1, 2), name="first"),
    ]
    with psycopg.connect(queue.dsn) as connection:
        last, first = windlass.submit_many_in(connection, jobs, NewWorkflow(name="both"))
    assert queue.client.job(last.id).result(timeout=60) == 7
    shown = queue.client.job(last.id).info()
    assert shown.after == [first.id]
    assert shown.workflow is not None


def test_the_result_of_a_job_may_be_an_argument_of_the_next(queue: Queue) -> None:
    with psycopg.connect(queue.dsn) as connection:
        first = add.submit_in(connection, 1, 2)
        second = windlass.submit_in(connection, JobSpec(task="python", args=passed_on(first.id)))
    assert queue.client.job(second.id).result(timeout=60) == 13


def passed_on(job: int) -> dict[str, Any]:
    """Returns a call of `add` with the result of a job."""
    call = {"function": "tests.transactions.functions:add", "kwargs": {}}
    return {**call, "args": [{"$result": job}, 10]}


def test_a_job_may_wait_for_one_whose_key_was_taken(queue: Queue) -> None:
    keyed = add.options(key="order-2", key_for="1h")
    with psycopg.connect(queue.dsn) as connection:
        first = keyed.submit_in(connection, 1, 2)
        again = keyed.submit_in(connection, 1, 2)
        last = add.options(after=[again.id]).submit_in(connection, 3, 4)
    assert queue.client.job(last.id).result(timeout=60) == 7
    assert queue.client.job(last.id).info().after == [first.id]


def test_a_signal_after_the_commit_reaches_the_job(queue: Queue) -> None:
    with psycopg.connect(queue.dsn) as connection:
        connection.execute("SET windlass.notify = off")
        job = wait_for_it.submit_in(connection, "here")
    queue.client.send("here", "hello")
    assert queue.client.job(job.id).result(timeout=60) == "hello"


def test_a_key_that_is_taken_leads_to_the_job_that_has_it(queue: Queue) -> None:
    keyed = add.options(key="order-1", key_for="1h")
    with psycopg.connect(queue.dsn) as connection:
        first = keyed.submit_in(connection, 1, 2)
        again = keyed.submit_in(connection, 1, 2)
    assert first.id != again.id
    assert queue.client.job(first.id).result(timeout=60) == 3
    assert queue.client.job(again.id).info().id == first.id
    assert queue.client.job(again.id).result(timeout=60) == 3


def test_a_delay_counts_from_the_submission(queue: Queue) -> None:
    with psycopg.connect(queue.dsn) as connection:
        job = add.options(delay="1h", key="late").submit_in(connection, 1, 2)
    shown = queue.client.job(job.id).info()
    assert shown.state == "queued"
    assert shown.not_before is not None
    queue.client.job(job.id).cancel()


def test_a_key_with_another_body_is_refused_inside_the_transaction(
    queue: Queue, app: "psycopg.Connection[Any]"
) -> None:
    held = queue.client.submit(wait_for_it.options(key="held-7"), "signal-7")
    try:
        with app.transaction():
            assert wait_for_it.options(key="held-7").submit_in(app, "signal-7").id > held.id
        with pytest.raises(Conflict, match=f"'held-7' is used by job {held.id}"), app.transaction():
            wait_for_it.options(key="held-7").submit_in(app, "another")
        with pytest.raises(Conflict, match=r"jobs\[0\], which differs"):
            windlass.submit_many_in(app, [add.options(key="two").job(1, n) for n in (1, 2)])
    finally:
        held.cancel()
    held.wait(timeout=30)
    with app.transaction():  # Its key is free again.
        assert wait_for_it.options(key="held-7").submit_in(app, "another").id > held.id


def test_a_role_does_not_learn_of_keys_in_other_namespaces(queue: Queue, clerk: str) -> None:
    held = queue.client.submit(wait_for_it.options(key="secret-key"), "signal-8")
    body = json.dumps({"jobs": [ECHO]})
    key = {"field": "k", "namespace": "default", "key": "secret-key", "task": "x", "args": {}}
    facts = {"count": 1, "namespaces": [], "jobs": [], "workflows": [], "keys": [key]}
    ask = f"SELECT windlass.submit_request(1, '{body}', '{json.dumps(facts)}')"
    try:
        assert committed(queue, ask, clerk)
    finally:
        held.cancel()


def db(*words: str) -> int:
    """Runs a command of `windlass db` and returns its exit code."""
    try:
        run_command(["db", *words])
    except SystemExit as over:
        return int(over.code or 0)
    return 0


@pytest.fixture
def clerk(queue: Queue) -> Iterator[str]:
    """A role of the database that may submit to namespace `shop` only."""
    committed(queue, "CREATE ROLE clerk LOGIN")
    committed(queue, "SELECT windlass.allow_submit('clerk', '{shop}')")
    yield "clerk"
    committed(queue, "SELECT windlass.forbid_submit('clerk')")
    committed(queue, "DROP ROLE clerk")


def test_a_role_submits_to_its_namespaces_under_its_own_name(queue: Queue, clerk: str) -> None:
    job = committed(queue, f"SELECT windlass.submit('{json.dumps(ECHO)}')", clerk)
    shown = queue.client.job(job).info()
    assert (shown.namespace, shown.submitted_by) == ("shop", "role:clerk")


@pytest.mark.parametrize(
    "text",
    [
        f"SELECT windlass.submit('{json.dumps({**ECHO, 'namespace': 'bank'})}')",
        "SELECT body FROM windlass.inbox",
        "SELECT spec FROM windlass.jobs",
        "INSERT INTO windlass.inbox VALUES (1, 1, '{1}', 'role:root', '{}', '{}')",
        "SELECT windlass.allow_submit('clerk')",
        "SELECT windlass.submit_rights()",
        "UPDATE windlass.submitters SET namespaces = '{}'",
        "CREATE TABLE windlass.mine ()",
    ],
)
def test_a_role_can_do_nothing_but_submit(queue: Queue, clerk: str, text: str) -> None:
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        committed(queue, text, clerk)


def test_jobs_of_another_namespace_do_not_exist_for_a_role(queue: Queue, clerk: str) -> None:
    other = queue.client.submit(add, 1, 2).id
    text = json.dumps({**ECHO, "after": [other]})
    with pytest.raises(psycopg.Error, match="the id of an existing job"):
        committed(queue, f"SELECT windlass.submit('{text}')", clerk)


def test_a_namespace_that_was_smuggled_past_the_function_is_refused(
    queue: Queue, clerk: str
) -> None:
    body = json.dumps({"jobs": [{**ECHO, "namespace": "bank"}]})
    facts = json.dumps({"count": 1, "namespaces": [], "jobs": [], "workflows": []})
    (job,) = committed(queue, f"SELECT windlass.submit_request(1, '{body}', '{facts}')", clerk)
    shown = queue.client.job(job).info()
    assert (shown.state, shown.namespace) == ("rejected", "shop")
    assert "does not see namespace bank" in str(shown.reason)


def test_a_role_without_the_right_is_told_how_to_get_it(queue: Queue) -> None:
    committed(queue, "CREATE ROLE stranger LOGIN")
    try:
        dsn = queue.dsn.replace("windlass@", "stranger@")
        with psycopg.connect(dsn) as connection, pytest.raises(Conflict, match="allow-submit"):
            add.submit_in(connection, 1, 2)
    finally:
        committed(queue, "DROP ROLE stranger")


def test_a_command_says_which_roles_may_submit_where(
    queue: Queue, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ("--store", queue.dsn)
    committed(queue, "CREATE ROLE porter LOGIN")
    stranger = queue.dsn.replace("windlass@", "porter@")
    try:
        for given, said in (
            ((), "--all-namespaces"),
            (("--namespace", "shop", "--all-namespaces"), "either --namespace"),
            (("--namespace", "*"), "--all-namespaces"),
        ):
            assert db("allow-submit", "porter", *given, *store) != 0
            assert said in capsys.readouterr().err
        assert db("allow-submit", "porter", "--namespace", "shop", *store) == 0
        assert db("submitters", *store) == 0
        assert ["porter", "shop"] in [line.split() for line in capsys.readouterr().out.splitlines()]
        assert committed(queue, f"SELECT windlass.submit('{json.dumps(ECHO)}')", "porter")
        assert db("allow-submit", "porter", "--all-namespaces", *store) == 0
        bank = json.dumps({**ECHO, "namespace": "bank"})
        assert committed(queue, f"SELECT windlass.submit('{bank}')", "porter")
        # Who may submit cannot say who may, nor see it.
        for command in (("allow-submit", "porter", "--all-namespaces"), ("deny-submit", "porter"),
                        ("submitters",)):  # fmt: skip
            capsys.readouterr()
            assert db(*command, "--store", stranger) != 0
            assert "only the owner" in capsys.readouterr().err
        assert db("deny-submit", "porter", *store) == 0
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            committed(queue, f"SELECT windlass.submit('{json.dumps(ECHO)}')", "porter")
        capsys.readouterr()
        for command in (("deny-submit", "porter"), ("allow-submit", "nobody", "--all-namespaces")):
            assert db(*command, *store) != 0
            assert "role" in capsys.readouterr().err
    finally:
        committed(queue, "DROP ROLE porter")


def test_a_role_is_allowed_every_namespace_only_if_that_is_said(queue: Queue) -> None:
    with pytest.raises(psycopg.Error, match="name the namespaces that clerk may submit to"):
        committed(queue, "SELECT windlass.allow_submit('clerk')")


def test_local_files_are_refused_inside_the_transaction(queue: Queue, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("hello")
    with psycopg.connect(queue.dsn) as connection:
        with pytest.raises(InvalidInput, match=r"client\.upload"):
            read_file.submit_in(connection, file)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]  # It can go on.
        uploaded = queue.client.upload(file)
        job = read_file.submit_in(connection, uploaded)  # type: ignore[arg-type]
    assert queue.client.job(job.id).result(timeout=60) == "hello"


def test_large_arguments_are_refused_with_the_way_out(queue: Queue) -> None:
    with psycopg.connect(queue.dsn) as connection:
        large = JobSpec(task="python", args={"function": "m:f", "args": ["x" * (1 << 20)]})
        with pytest.raises(InvalidInput, match=r"args of f .* in a transaction.*client\.upload"):
            windlass.submit_in(connection, large)
        assert connection.execute("SELECT 1").fetchall() == [(1,)]  # It can go on.


def test_a_database_without_the_schema_says_what_to_run(
    postgres_server: PostgresServer,
) -> None:
    dsn = postgres_server.create_database()
    try:
        with psycopg.connect(dsn) as connection:
            with pytest.raises(Conflict, match="windlass db upgrade"):
                add.submit_in(connection, 1, 2)
            connection.rollback()
            connection.execute("CREATE SCHEMA windlass")
            with pytest.raises(Conflict, match="older than this library"):
                add.submit_in(connection, 1, 2)
    finally:
        postgres_server.drop_database(dsn)


def test_a_library_of_another_version_is_refused(app: "psycopg.Connection[Any]") -> None:
    with pytest.raises(psycopg.Error, match="version 1, this library sends version 9"):
        app.execute("SELECT windlass.submit_request(9, '{}', '{}')")


def test_the_wrong_kind_of_connection_is_named(app: "psycopg.Connection[Any]") -> None:
    with pytest.raises(InvalidInput, match="psycopg 3"):
        windlass.submit_in(object(), add, 1, 2)


def test_without_a_notification_the_loop_finds_the_job(queue: Queue) -> None:
    with psycopg.connect(queue.dsn) as connection:
        connection.execute("SET windlass.notify = off")
        job = add.submit_in(connection, 1, 2)

    async def moved() -> bool:
        return bool(queue.ask("SELECT FROM windlass.jobs WHERE id = %s", job.id))

    run(until("the job is in the queue", moved, 60))
    assert queue.client.job(job.id).result(timeout=60) == 3
