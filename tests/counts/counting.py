"""An engine on a store whose statements are written down as they are sent."""

from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest

from windlass.clock import RealChance, RealClock
from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.engine.engine import Engine
from windlass.engine.fleet.enrolment import Enrolment
from windlass.messages.sync import Finished, SyncRequest
from windlass.store.postgres.session import Session
from windlass.store.postgres.store import PostgresStore
from windlass.store.sqlite.store import SqliteStore

SLOTS = 2_000
CHUNK = 1_000

# Sent beside the commands, at its own pace: news to other servers.
NOT_COUNTED = {"notify"}


class Sent(msgspec.Struct, frozen=True):
    """What one command sent to the store, and how many rows it wrote."""

    statements: tuple[str, ...]
    rows: int

    def count(self, start: str) -> int:
        """How many statements begin like this."""
        return sum(text.startswith(start) for text in self.statements)


class Counted:
    """An engine, one worker, and what their commands cost."""

    def __init__(self, engine: Engine, statements: list[str], changes: Callable[[], int]) -> None:
        self.engine = engine
        self._statements = statements
        self._changes = changes
        self._worker = 0
        self._incarnation = 0
        self._seq = 0
        self._received = 0
        self._held: tuple[Finished, ...] = ()

    async def enrol(self, name: str = "w") -> None:
        enrolled = await self.engine.workers.enrol(Enrolment(name=name, slots=SLOTS))
        await self.engine.settled()  # what a start leaves to do is not counted
        self._worker, self._incarnation = enrolled.worker, enrolled.incarnation

    async def another(self, name: str) -> "Counted":
        """The same engine with another worker."""
        other = Counted(self.engine, self._statements, self._changes)
        await other.enrol(name)
        return other

    async def fill(self, jobs: int) -> None:
        """Queue jobs and take one through its life, so that every cache is warm."""
        for first in range(0, jobs, CHUNK):
            await self.engine.submit(specs(min(CHUNK, jobs - first)))
        for want in (1, 1, 0):
            await self.sync(want)

    async def submit(self, jobs: int) -> Sent:
        with self.counting() as sent:
            await self.engine.submit(specs(jobs))
        return sent[0]

    async def sync(self, want: int, finds: int | None = None) -> Sent:
        """Finish all that is held and claim `want` others, or as many as there are."""
        self._seq += 1
        request = SyncRequest(
            incarnation=self._incarnation,
            seq=self._seq,
            received=self._received,
            finished=self._held,
            want=want,
        )
        with self.counting() as sent:
            reply = await self.engine.sync(self._worker, request)
        assert len(reply.jobs) == (want if finds is None else finds)
        assert not reply.lost
        self._held = tuple(Finished(job.job, job.attempt, result="r") for job in reply.jobs)
        self._received = max((job.lease for job in reply.jobs), default=self._received)
        return sent[0]

    @contextmanager
    def counting(self) -> Iterator[list[Sent]]:
        """What is sent meanwhile stands in the list afterwards."""
        sent: list[Sent] = []
        self._statements.clear()
        before = self._changes()
        yield sent
        sent.append(Sent(tuple(self._statements), self._changes() - before))


def specs(count: int) -> list[JobSpec]:
    return [JobSpec(task="t", args=n) for n in range(count)]


@asynccontextmanager
async def counted_sqlite(path: Path) -> AsyncIterator[Counted]:
    """Statements are texts, rows are those SQLite counts as changed."""
    store = SqliteStore.open(path, RealClock())
    statements: list[str] = []

    def note(event: dict[str, Any]) -> None:
        statements.append(" ".join(event["sql"].split()))

    store.writer.trace_v2(apsw.SQLITE_TRACE_STMT, note)
    engine = Engine(store, Config(), RealChance())
    await engine.start()
    counted = Counted(engine, statements, store.writer.total_changes)
    await counted.enrol()
    yield counted
    await engine.close()
    await store.close()


@asynccontextmanager
async def counted_postgres(
    dsn: str, patch: pytest.MonkeyPatch, hot: bool = True
) -> AsyncIterator[Counted]:
    """Statements are names, each one a round trip; rows are not counted.

    Without `hot` every command takes the normal path.
    """
    statements: list[str] = []
    for method in ("fetch", "fetch_value", "execute"):
        _watch(method, statements, patch)
    store = await PostgresStore.connect(dsn, fast_path=hot)
    await store.upgrade()
    engine = Engine(store, Config(), RealChance())
    await engine.start()
    counted = Counted(engine, statements, lambda: 0)
    await counted.enrol()
    yield counted
    await engine.close()
    await store.close()


def _watch(method: str, statements: list[str], patch: pytest.MonkeyPatch) -> None:
    original = getattr(Session, method)

    def watched(session: Session, name: str, *args: object) -> Any:
        if name not in NOT_COUNTED:
            statements.append(name)
        return original(session, name, *args)

    patch.setattr(Session, method, watched)
