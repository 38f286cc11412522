"""The code of the guides runs."""

import re
from pathlib import Path

import psycopg
import pytest

import windlass
from tests.transactions.conftest import Queue
from windlass.cli.app import run_command

GUIDES = Path(__file__).resolve().parents[2] / "docs" / "guides"
BLOCK = re.compile(r"^```(?P<language>python|sql)\n(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(guide: str, language: str) -> list[str]:
    found = BLOCK.finditer((GUIDES / guide).read_text())
    return [block["code"] for block in found if block["language"] == language]


@pytest.fixture(autouse=True)
def place(queue: Queue, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Queue:
    """A folder of one's own, and the environment that the guides name."""
    monkeypatch.setenv("DATABASE_URL", queue.dsn)
    monkeypatch.chdir(tmp_path)
    return queue


def test_the_programs_of_the_guide_to_transactions_submit(queue: Queue) -> None:
    with windlass.Client.embedded("shop.db", workers=0):
        pass  # it creates the file
    before = len(queue.client.jobs(limit=1_000))
    for code in blocks("transactions.md", "python"):
        exec(compile(code, "transactions.md", "exec"), {"__name__": "guide"})
    assert queue.ask("SELECT body FROM letters") == [("two words",)]
    assert not queue.job_exists(10**9)  # after a look into the inbox
    newest = queue.client.jobs(limit=1_000)
    assert len(newest) == before + 3
    assert newest[0].after == [newest[1].id]
    with windlass.Client.embedded("shop.db", workers=0) as client:
        assert client.job(1).info().state == "queued"


def test_the_statements_of_the_guide_to_transactions_run(queue: Queue) -> None:
    (submits,) = blocks("transactions.md", "sql")
    before = len(queue.client.jobs(limit=1_000))
    with psycopg.connect(queue.dsn, autocommit=True) as connection:
        for statement in submits.splitlines():
            connection.execute(statement.encode())
    assert not queue.job_exists(10**9)  # after a look into the inbox
    assert len(queue.client.jobs(limit=1_000)) == before + 2


def windlass_command(*words: str) -> None:
    """Runs a command, which must succeed."""
    with pytest.raises(SystemExit) as over:
        run_command(words)
    assert not over.value.code


def test_the_commands_of_the_guide_to_transactions_give_and_take_rights(queue: Queue) -> None:
    text = (GUIDES / "transactions.md").read_text()
    commands = re.findall(r"^    windlass (db (?:allow|deny).*) --store", text, re.MULTILINE)
    assert len(commands) == 3
    with psycopg.connect(queue.dsn, autocommit=True) as connection:
        connection.execute("CREATE ROLE shop")
        connection.execute("CREATE ROLE reports")
        try:
            for command in commands:
                windlass_command(*command.split(), "--store", queue.dsn)
            allowed = {role for (role,) in queue.ask("SELECT role FROM windlass.submitters")}
            assert allowed & {"shop", "reports"} == {"reports"}
        finally:
            windlass_command("db", "deny-submit", "reports", "--store", queue.dsn)
            connection.execute("DROP ROLE shop")
            connection.execute("DROP ROLE reports")


@pytest.mark.parametrize("code", blocks("frameworks.md", "python"))
def test_the_programs_of_the_guide_to_frameworks_run(code: str) -> None:
    names: dict[str, object] = {"__name__": "guide"}
    exec(compile(code, "frameworks.md", "exec"), names)
    assert {"app", "create_app", "WINDLASS"} & names.keys()
