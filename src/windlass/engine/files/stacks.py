"""The stacks of running functions: asks the worker that holds the attempt.

The worker may sync with another server than the one that was asked. That server puts the answer
into the blobs, which all servers share, and the asking one takes it from there.
"""

import asyncio
from typing import Final

import msgspec

from windlass.domain.lifecycle.states import RUNNING
from windlass.domain.rows.records import Lease
from windlass.domain.values.errors import Conflict, InvalidInput, existing
from windlass.domain.values.ids import shown_attempt
from windlass.domain.values.quantities import format_moment
from windlass.engine.attempts.writes import held_lease
from windlass.engine.engine import Engine
from windlass.engine.sync.stacks import WAIT_S, StackRequest
from windlass.engine.transaction.arguments import check_id
from windlass.messages.files import Stack, StackReport
from windlass.ports.blobs import Blobs
from windlass.ports.gateway import Holder
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import News

FOLDER: Final = "stacks"
MAX_BYTES: Final = 256 * 1024  # bytes of an answer as JSON
LOOK_S: Final = 0.1  # interval of looking for another server's answer

_report: Final = msgspec.json.Decoder(StackReport).decode


class Stacks:
    """Asks for stacks, and takes the answers of workers."""

    def __init__(self, engine: Engine, blobs: Blobs) -> None:
        self._engine = engine
        self._blobs = blobs

    async def ask(self, job: int) -> Stack:
        """Returns the stack of a running job's function; raises if nobody can tell."""
        check_id("job", job)
        lease, name, now = await self._engine.store.read(lambda tx: _running(tx, job))
        if lease is None:
            raise Conflict("not_running", f"job {job} is not running")
        asked = lease.worker, lease.incarnation, job, lease.attempt
        request, answer = self._engine.stacks.ask(*asked)
        if self._engine.store.shared:
            self._engine.store.announce(News(stacks=(request,)))
        report = await self._wait(request, answer)
        if report is None:
            raise Conflict("no_answer", f"worker {name} did not answer within {WAIT_S:.0f} s")
        if report.problem is not None:
            raise Conflict("no_stack", report.problem)
        return Stack(
            job=job, attempt=shown_attempt(lease.attempt), worker=name, at=format_moment(now),
            threads=report.threads,
        )  # fmt: skip

    async def answer(self, holder: Holder, report: StackReport) -> None:
        """Accepts the answer of the worker that holds the attempt."""
        body = msgspec.json.encode(report)
        if len(body) > MAX_BYTES:
            raise InvalidInput("threads", f"at most {MAX_BYTES} bytes as JSON", len(body))
        await self._engine.store.read(lambda tx: held_lease(tx, holder))
        if not self._engine.stacks.answered(holder, report):
            await self._blobs.put(_key(StackRequest(*holder, report.request)), body)

    async def _wait(
        self, request: StackRequest, answer: "asyncio.Future[StackReport]"
    ) -> StackReport | None:
        loop = asyncio.get_running_loop()
        until = loop.time() + WAIT_S
        pause = LOOK_S if self._engine.store.shared else WAIT_S
        while loop.time() < until and not self._engine.is_stopping:
            done, _ = await asyncio.wait((answer,), timeout=min(pause, until - loop.time()))
            if done:
                return answer.result()
            body = await self._blobs.get(_key(request)) if self._engine.store.shared else None
            if body is not None:
                await self._blobs.delete([_key(request)])
                return _report(body)
        return None


async def _running(tx: ReadTx, job: int) -> tuple[Lease | None, str, int]:
    view = existing("job", job, await tx.views.job(job))
    lease = view.lease if view.lease is not None and view.lease.state == RUNNING else None
    return lease, view.worker or "", tx.now


def _key(request: StackRequest) -> str:
    return f"{FOLDER}/{request.job}/{request.attempt}/{request.number}"
