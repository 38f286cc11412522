"""`engine.steps`: what functions store and wait for, signals, and answers to questions."""

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import msgspec

from windlass.domain.config import Config
from windlass.domain.rows.records import Lease
from windlass.domain.rows.steps import SignalRow, StepKind, StepRow
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.json_schema import check_schema
from windlass.domain.values.names import check_name
from windlass.engine.attempts.writes import Apply, Write, check_holder, write_all
from windlass.engine.steps import (
    Sent,
    WaitSpec,
    answer,
    begin_wait,
    check_lease,
    deliver,
    end_joins,
    find_step,
    overdue_joins,
    send,
    store_step,
)
from windlass.engine.transaction.arguments import check_id, check_text, json_value
from windlass.engine.transaction.catalog import Catalog
from windlass.engine.transaction.group_commit import Committer, Lane, RunStep
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.gateway import Holder
from windlass.store.store import Store

QUESTION_LIMIT: Final = 65_536  # bytes of a question with its schema
JOIN_LIMIT: Final = 10_000  # jobs of one wait
LOOKED_AT: Final = 200  # waits for jobs checked in one read
MAX_MS: Final = 100 * 366 * 86_400_000

_encode = msgspec.json.Encoder().encode


class Steps:
    """Durable steps. Writes of attempts share transactions, as their logs do."""

    def __init__(
        self, *, store: Store, config: Config, catalog: Catalog, committer: Committer,
        run: RunStep, joined: dict[int, set[int]],
    ) -> None:  # fmt: skip
        """Takes in `joined` the jobs that others wait for, by child; their ends continue the
        waiting ones.
        """
        self._store = store
        self._config = config
        self._catalog = catalog
        self._committer = committer
        self._run = run
        self._joined = joined
        self._writes: Lane[Write, Any] = committer.lane(Lane(write_all))

    # For running attempts

    async def find(self, holder: Holder, key: str) -> StepRow | None:
        """Returns a step that an earlier attempt has stored."""
        check_name("key", key)
        found: StepRow | None = await self._write(holder, find_step(key, StepKind.CALL))
        return found

    async def store_result(self, holder: Holder, key: str, value: Any) -> StepRow:
        """Stores the result of a step, unless there is one; returns what is stored."""
        check_name("key", key)
        body = self._json("value", value)
        row: StepRow = await self._write(holder, store_step(key, body))
        return row

    async def sleep(self, holder: Holder, key: str, wait_ms: int) -> StepRow:
        """Begins a sleep, or says whether it is over."""
        return await self._wait(holder, WaitSpec(key, StepKind.SLEEP, wait_ms))

    async def wait_for(self, holder: Holder, key: str, name: str, wait_ms: int | None) -> StepRow:
        """Begins to wait for a signal, or returns the one that has come."""
        check_name("name", name)
        return await self._wait(holder, WaitSpec(key, StepKind.SIGNAL, wait_ms, name))

    async def ask(
        self, holder: Holder, key: str, question: str, schema: Any, wait_ms: int | None
    ) -> StepRow:
        """Asks people a question, or returns the answer."""
        check_text("question", question)
        check_schema(schema)
        body = _encode({"question": question, "schema": schema})
        if len(body) > QUESTION_LIMIT:
            limit = f"at most {QUESTION_LIMIT:,} bytes with its schema"
            raise InvalidInput("question", limit, f"{len(body):,} bytes")
        return await self._wait(holder, WaitSpec(key, StepKind.QUESTION, wait_ms, body=body))

    async def join(
        self, holder: Holder, key: str, jobs: Sequence[int], wait_ms: int | None
    ) -> StepRow:
        """Begins to wait for jobs that this one has submitted, or returns those that have ended."""
        if not 1 <= len(jobs) <= JOIN_LIMIT:
            raise InvalidInput("jobs", f"from 1 to {JOIN_LIMIT:,}", f"{len(jobs):,}")
        for job in jobs:
            check_id("jobs", job)
            self._joined.setdefault(job, set()).add(holder.job)
        body = _encode({"jobs": jobs})
        return await self._wait(holder, WaitSpec(key, StepKind.JOBS, wait_ms, body=body))

    async def end_joins(self) -> int:
        """Continues all jobs whose children have ended; returns how many."""
        ended = after = 0
        while True:
            look = partial(overdue_joins, after=after, count=LOOKED_AT)
            parents, after = await self._store.read(look)
            if parents:
                ended += await self._run(partial(end_joins, parents=parents))
            if not after:
                return ended

    async def send_from(self, holder: Holder, name: str, payload: Any, key: str) -> Sent:
        """Sends a signal on behalf of a running job, in its namespace."""
        check_name("key", key)
        await self._write(holder, _may_go_on)
        facts = (await self._store.read(lambda tx: tx.jobs.read([holder.job])))[holder.job]
        await self._store.read(lambda tx: self._catalog.know(tx, [facts.shape]))
        namespace = self._catalog.shapes[facts.shape].namespace
        return await self.send(namespace, name, payload, f"{holder.job} {key}", f"job {holder.job}")

    async def note_alive(self, holder: Holder) -> None:
        """Notes that the function is still at work: its write counts as activity."""
        await self._write(holder, _may_go_on)

    # For all callers

    async def send(
        self, namespace: str, name: str, payload: Any, key: str, actor: str | None
    ) -> Sent:
        """Sends a signal to all jobs of the namespace that wait for it, now or later."""
        check_name("name", name)
        check_text("key", key)
        check_text("actor", actor)
        body = self._json("payload", payload)
        signal = SignalRow(0, namespace, name, key, 0, 1, actor, body)
        sent = await self._run(lambda work: send(work, signal))
        told, last = 0, sent
        while sent.applied and last.signal.is_open:
            open_signal = last.signal
            last = await self._run(lambda work, s=open_signal: deliver(work, s))  # type: ignore[misc]
            told += last.told
        return sent._replace(told=told)

    async def answer(self, job: int, key: str | None, value: Any, actor: str | None) -> StepRow:
        """Answers a question; the first answer that fits its schema counts."""
        check_id("job", job)
        check_text("actor", actor)
        body = self._json("answer", value)
        return await self._run(lambda work: answer(work, job, key, body, actor))

    # Parts

    async def _wait(self, holder: Holder, wait: WaitSpec) -> StepRow:
        check_name("key", wait.key)
        if wait.wait_ms is not None and not 0 <= wait.wait_ms <= MAX_MS:
            raise InvalidInput("timeout", "from 0 to 100 years", wait.wait_ms)
        row: StepRow = await self._write(holder, begin_wait(wait))
        return row

    async def _write(self, holder: Holder, apply: Apply) -> Any:
        check_holder(holder)
        return await self._committer.call(self._writes, Write(holder, apply))

    def _json(self, field: str, value: Any) -> bytes:
        return json_value(field, value, self._config.step_limit, "step_limit")


async def _may_go_on(work: Work, holder: Holder, lease: Lease | None) -> None:
    check_lease(work, holder, lease)
