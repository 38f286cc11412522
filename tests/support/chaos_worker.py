"""A process with an engine and a worker of its own, which may be killed at any moment.

`python -m tests.support.chaos_worker DSN SERVER WORKER TAKEOVER`: it takes jobs and reports
them as its arguments say ({"fails": 1}: the first attempt fails), prints a line with the
number of reports that were accepted, and ends on SIGTERM.
"""

import asyncio
import logging
import signal
import sys

import msgspec
import structlog

from windlass.clock import RealChance, RealClock
from windlass.domain.config import Config
from windlass.domain.lifecycle.retries import RetryPolicy
from windlass.domain.values.errors import Conflict
from windlass.engine.engine import Engine
from windlass.engine.fleet.enrolment import Enrolment
from windlass.engine.fleet.workers import Enrolled
from windlass.engine.loops.scheduling import CleanupLoop, HealthLoop, SchedulingLoop
from windlass.engine.loops.ticker import Ticker
from windlass.messages.sync import Assignment, Finished, SyncReply, SyncRequest
from windlass.store.postgres.store import PostgresStore

SLOTS = 50

# The shortest lease that is allowed, so that what a killed worker held is soon given up.
CONFIG = Config(
    heartbeat_interval_ms=200,
    heartbeat_timeout_ms=5_400,
    term_grace_ms=0,
    health_interval_ms=500,
    scheduling_interval_ms=500,
    cleanup_interval_ms=1_000,
    bad_worker_jobs=0,
    retry=RetryPolicy(
        max_retries=10, max_lost=50, poison_losses=0, initial_backoff_ms=50, max_backoff_ms=500
    ),
)


class _Args(msgspec.Struct, frozen=True):
    fails: int = 0


class _Spec(msgspec.Struct, frozen=True):
    args: _Args = _Args()


_decode = msgspec.json.Decoder(_Spec).decode


class ChaosWorker:
    """The agent: it says what became of its jobs and asks for more."""

    def __init__(self, engine: Engine, name: str, takeover: bool) -> None:
        self._engine = engine
        self._enrolment = Enrolment(name=name, slots=SLOTS, takeover=takeover)
        self._enrolled: Enrolled
        self._seq = 0
        self._received = 0
        self._finished: tuple[Finished, ...] = ()

    async def run(self, stopping: asyncio.Event) -> None:
        """Work until told to stop; a worker that was given up for lost begins anew."""
        await self._enrol()
        while not stopping.is_set():
            try:
                reply = await self._sync()
            except Conflict:
                await self._enrol()
                continue
            accepted = len(self._finished) - len(reply.lost)
            self._finished = tuple(map(_outcome, reply.jobs))
            self._received = max([self._received, *(job.lease for job in reply.jobs)])
            sys.stdout.write(f"{accepted}\n")
            sys.stdout.flush()

    async def _enrol(self) -> None:
        """The processes of an older incarnation are gone: this one has none but itself."""
        self._enrolled = await self._engine.workers.enrol(self._enrolment)
        self._enrolment = msgspec.structs.replace(self._enrolment, takeover=True)
        self._seq = self._received = 0
        self._finished = ()

    async def _sync(self) -> SyncReply:
        self._seq += 1
        request = SyncRequest(
            incarnation=self._enrolled.incarnation,
            seq=self._seq,
            received=self._received,
            finished=self._finished,
            want=SLOTS,
            wait_ms=CONFIG.heartbeat_interval_ms,
        )
        return await self._engine.sync(self._enrolled.worker, request)


def _outcome(job: Assignment) -> Finished:
    if job.attempt <= _decode(job.spec).args.fails:
        return Finished(job.job, job.attempt, "failed", failure="network")
    return Finished(job.job, job.attempt, exit_code=0)


async def main(dsn: str, server: str, worker: str, takeover: str) -> None:
    """Run engine, loops and worker in one process."""
    # The output is for the counts alone.
    structlog.configure(
        wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )
    stopping = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopping.set)
    store = await PostgresStore.connect(dsn, server)
    engine = Engine(store, CONFIG, RealChance())
    await engine.start()
    loops = (HealthLoop(engine), CleanupLoop(engine), SchedulingLoop(engine))
    tickers = [Ticker(loop, RealClock()) for loop in loops]
    for ticker in tickers:
        ticker.start()
    await ChaosWorker(engine, worker, takeover == "takeover").run(stopping)
    for ticker in tickers:
        await ticker.stop(CONFIG.drain_limit_ms)
    await engine.close()
    await store.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
