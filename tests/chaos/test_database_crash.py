"""PostgreSQL crashes while a server stands still amid its commits: answers are for what is there.

Each COMMIT waits 0.1 s before it reaches the disk. The database dies in that time, and others take
the numbers of the transactions that it lost, before the server finds out that no answer comes.
"""

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import asyncpg
import httpx
import pytest

from tests.support.fleet import Fleet
from tests.support.forms import by_form
from tests.support.postgres import PostgresServer, start_postgres
from tests.support.running import run
from tests.support.running_server import JSON, NO_TLS, error_of, job
from tests.support.waiting import until

CRASHES = by_form(2, 20)
CALLERS = 6  # of each kind
AT_ONCE = 3  # commits that the crash meets
SLOW_COMMITS = {"commit_delay": "100000", "commit_siblings": "0", "wal_writer_delay": "10s"}
LIMIT_S = 600
NUMBERS = count(1)  # no caller has the names of another
READ = (
    "/readyz",
    "/api/v1/jobs",
    "/api/v1/workflows",
    "/api/v1/overview",
    "/api/v1/attention",
    "/api/v1/events?follow=false&after=0",
    "/metrics",
)
LOST = (OSError, asyncpg.PostgresError, asyncpg.InterfaceError)
COMMITTING = """
    SELECT count(*) FROM pg_stat_activity
    WHERE application_name = 'windlass' AND state = 'active' AND query LIKE '%COMMIT'
"""
TAKE_NUMBERS = """
    DO $$ BEGIN
        FOR n IN 1 .. 3000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP;
    END $$
"""


class Ledger:
    """What callers were told, kept outside of the server and of the database."""

    def __init__(self) -> None:
        self.jobs: list[int] = []
        self.workflows: list[int] = []
        self.tokens: list[str] = []
        self.refused: list[dict[str, Any]] = []  # submissions, to be sent again
        self.uncertain = 0  # refusals of any kind since the last crash

    def note(self, sent: dict[str, Any], reply: httpx.Response) -> None:
        assert reply.status_code in {201, 503}, (reply.status_code, reply.text)
        if reply.status_code == 503:
            assert int(reply.headers["Retry-After"]) > 0
            assert error_of(reply)["outcome_unknown"] in {True, False}
            self.uncertain += 1
            if "jobs" in sent:
                self.refused.append(sent)
            return
        told = reply.json()
        if "jobs" not in sent:
            self.tokens.append(sent["name"])
            return
        self.jobs += told["ids"]
        if told["workflow"] is not None:
            self.workflows.append(told["workflow"])

    async def check(self, database: "asyncpg.Connection[Any]") -> None:
        """Everything that was answered is there."""
        asked: tuple[tuple[str, list[Any]], ...] = (
            ("SELECT id FROM windlass.jobs WHERE id = ANY ($1)", self.jobs),
            ("SELECT id FROM windlass.workflows WHERE id = ANY ($1)", self.workflows),
            ("SELECT name FROM windlass.tokens WHERE name = ANY ($1)", self.tokens),
        )
        for question, answered in asked:
            there = {row[0] for row in await database.fetch(question, answered)}
            assert there == set(answered), sorted(set(answered) - there)


def bodies(kind: str, who: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yields requests without end: where they go and what they say."""
    for number in count(1):
        name = f"{kind}-{who}-{number}"
        if kind == "token":
            yield "/api/v1/tokens", {"name": name, "role": "viewer", "namespaces": ["default"]}
        elif kind == "workflow":
            pair = [job(name="a"), job(name="b", after=["a"])]
            yield "/api/v1/jobs", {"jobs": pair, "workflow": {"name": name}, "key": name}
        else:
            yield "/api/v1/jobs", {"jobs": [job(name=name)], "key": name}


async def call(
    client: httpx.AsyncClient, kind: str, who: str, ledger: Ledger, ends: asyncio.Event
) -> None:
    for path, body in bodies(kind, who):
        ledger.note(body, await client.post(path, json=body))
        if ends.is_set():
            return


async def read(client: httpx.AsyncClient, ends: asyncio.Event) -> None:
    """A request meanwhile is answered, or told to come back."""
    while not ends.is_set():
        for path in READ:
            reply = await client.get(path)
            assert reply.status_code in {200, 503}, (path, reply.status_code, reply.text)


async def commit_inbox(dsn: str, ledger: Ledger, ends: asyncio.Event) -> None:
    """A program of a user, which submits in transactions of its own."""
    description = '{"task": "shell", "args": {"argv": ["true"]}}'
    while not ends.is_set():
        own = await connected(dsn)
        try:
            while not ends.is_set():
                ledger.jobs.append(await own.fetchval("SELECT windlass.submit($1)", description))
        except LOST:
            continue  # it will connect again
        finally:
            own.terminate()


@asynccontextmanager
async def callers(client: httpx.AsyncClient, dsn: str, ledger: Ledger) -> AsyncIterator[None]:
    """Calls of each kind go on until the end of the block, and are all answered after it."""
    ends = asyncio.Event()
    kinds = ("job", "workflow", "token")
    async with asyncio.TaskGroup() as group:
        for _ in range(CALLERS):
            who = str(next(NUMBERS))
            for kind in kinds:
                group.create_task(call(client, kind, who, ledger, ends))
        group.create_task(commit_inbox(dsn, ledger, ends))
        group.create_task(read(client, ends))
        try:
            yield
        finally:
            ends.set()


async def crash(postgres: PostgresServer, dsn: str, fleet: Fleet) -> None:
    """Stops the server in the middle of commits, crashes the database, takes the numbers."""
    watch = await asyncpg.connect(dsn)

    async def commits() -> bool:
        found: int = await watch.fetchval(COMMITTING)
        return found >= AT_ONCE

    await until("commits", commits, LIMIT_S, 0.002)
    fleet.send("server-1", signal.SIGSTOP)
    try:
        postgres.crash(watch.get_server_pid())  # those of the server may have ended meanwhile
        await until("the numbers are taken", lambda: takes_numbers(dsn), LIMIT_S)
    finally:
        fleet.send("server-1", signal.SIGCONT)
        watch.terminate()


async def takes_numbers(dsn: str) -> bool:
    """Whether the database, which may only be about to die, has given the numbers to others."""
    own = await connected(dsn)
    try:
        await own.execute(TAKE_NUMBERS)
    except LOST:
        return False
    finally:
        own.terminate()
    return True


async def connected(dsn: str) -> "asyncpg.Connection[Any]":
    """A connection to the database once it has recovered."""
    opened: list[asyncpg.Connection[Any]] = []

    async def opens() -> bool:
        try:
            opened.append(await asyncpg.connect(dsn, timeout=LIMIT_S))
        except LOST:
            return False
        return True

    await until("the database is back", opens, LIMIT_S)
    return opened[0]


async def play(postgres: PostgresServer, dsn: str, folder: Path) -> None:
    fleet = Fleet(folder, dsn)
    ledger = Ledger()
    try:
        await fleet.start_servers()
        headers = {"Authorization": f"Bearer {fleet.token}", **JSON}
        async with httpx.AsyncClient(
            base_url=fleet.address, headers=headers, timeout=LIMIT_S, verify=NO_TLS
        ) as client:
            for _ in range(CRASHES):
                ledger.uncertain = 0
                while not ledger.uncertain:  # until a commit was lost
                    async with callers(client, dsn, ledger):
                        await crash(postgres, dsn, fleet)
                await settle(client, dsn, ledger)
        code, said = await fleet.run("verify", "--store", dsn)
        assert code == 0, said
    finally:
        await fleet.stop()


async def settle(client: httpx.AsyncClient, dsn: str, ledger: Ledger) -> None:
    """Sends again what was refused, until it is answered; then everything is there, once."""
    while ledger.refused:
        again = ledger.refused.pop()
        ledger.note(again, await client.post("/api/v1/jobs", json=again))
    database = await asyncpg.connect(dsn)

    async def moved() -> bool:
        return not await database.fetchval("SELECT count(*) FROM windlass.inbox")

    await until("the inbox is empty", moved, LIMIT_S)
    await ledger.check(database)
    twice = "SELECT name FROM windlass.workflows GROUP BY name HAVING count(*) > 1"
    assert await database.fetch(twice) == []
    await database.close()


@pytest.fixture
def slow_postgres() -> Iterator[PostgresServer]:
    server = start_postgres(settings=SLOW_COMMITS)
    yield server
    server.stop()


def test_what_was_answered_is_there_after_the_database_crashed(
    slow_postgres: PostgresServer, tmp_path: Path
) -> None:
    run(play(slow_postgres, slow_postgres.create_database(), tmp_path))
