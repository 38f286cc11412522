"""A simulated agent that keeps the rules of sync (mechanics 1–8), and the faults it suffers.

It is a small state machine driven by callbacks. While it is paused (SIGSTOP) everything
that comes in waits; only the keeper, a process of its own, goes on.
"""

from typing import Any

from windlass.domain.values.errors import Conflict, NotFound, WindlassError
from windlass.engine.fleet.workers import Enrolment
from windlass.simulator.line import Line
from windlass.simulator.network import Network, UnreachableError
from windlass.simulator.processes import Keeper, Key, Process, Processes
from windlass.simulator.server import Server
from windlass.simulator.traits import Plan, Traits, draw_outcome, plan_of, report_of
from windlass.simulator.world import World
from windlass.wire.sync import (
    Assignment,
    Finished,
    Held,
    Released,
    Started,
    SyncReply,
    SyncRequest,
)

PATIENCE_MS = 2_500  # beyond the wait, before a sync is given up


class Agent:
    """One worker's machine: an agent process that comes and goes, and its keeper."""

    def __init__(
        self, world: World, network: Network, servers: list[Server], processes: Processes,
        traits: Traits,
    ) -> None:  # fmt: skip
        self.traits = traits
        self.worker = 0
        self._world = world
        self._processes = processes
        self._line = Line(world, network, servers, traits.name)
        self._newest = 0  # the newest incarnation that its state directory records
        self._keeper = Keeper(world)
        self._forget()

    def _forget(self) -> None:
        self._incarnation = 0
        self._seq = 0
        self._received = 0
        self._waiting: dict[Key, Assignment] = {}  # assigned, not yet asked to start
        self._starting: dict[Key, Assignment] = {}  # `started` was said, not yet answered
        self._running: dict[Key, Process] = {}
        self._reports: dict[Key, Finished | Released] = {}
        self._audited_at = 0.0
        self._draining = False

    # Life and death

    def start(self, takeover: bool = False) -> None:
        """The agent's process begins."""
        if self._line.alive:
            return
        self._line.begin()
        if takeover:
            self._keeper.kill_all()
        self._keeper = Keeper(self._world)
        self._forget()
        self._enrol(takeover)

    def crash(self, keeper_lingers: bool) -> None:
        """Kill −9. The keeper sees its pipe close; one that hangs goes on to its deadline."""
        if self._line.alive:
            self._line.end()
            if not keeper_lingers:
                self._keeper.kill_all()

    def pause(self) -> None:
        """SIGSTOP."""
        self._line.pause()

    def resume(self) -> None:
        """SIGCONT."""
        self._line.resume()

    # Enrolment

    def _enrol(self, takeover: bool) -> None:
        enrolment = Enrolment(
            name=self.traits.name, slots=self.traits.slots, metadata=self.traits.metadata,
            takeover=takeover, replaces=self._newest,
        )  # fmt: skip
        sent_at = self._world.loop.time()
        self._line.send(
            lambda engine: engine.workers.enrol(enrolment),
            lambda reply: self._enrolled(reply, sent_at, takeover),
            lambda: self._enrol(takeover),
            PATIENCE_MS,
        )

    def _enrolled(self, reply: Any, sent_at: float, takeover: bool) -> None:
        if isinstance(reply, WindlassError):
            wait = reply.retry_after_ms if isinstance(reply, Conflict) else None
            self._line.later(wait or self._world.between(200, 1_500), lambda: self._enrol(takeover))
            return
        self.worker, self._incarnation = reply.worker, reply.incarnation
        self._newest = self._incarnation
        self._keeper.extend(sent_at)
        self._sync()

    # Sync

    def _sync(self) -> None:
        self._seq += 1
        started = self._ask_to_start()
        reports = dict(self._reports)
        finished = tuple(r for r in reports.values() if isinstance(r, Finished))
        released = tuple(r for r in reports.values() if isinstance(r, Released))
        urgent = bool(started or reports)
        heartbeat = self._world.config.heartbeat_interval_ms
        request = SyncRequest(
            incarnation=self._incarnation,
            seq=self._seq,
            received=self._received,
            started=tuple(Started(*key) for key in started),
            finished=finished,
            released=released,
            want=self._want(),
            wait_ms=0 if urgent else self._world.between(heartbeat // 2, heartbeat),
            prefetch=self.traits.prefetch > 0,
            held=self._audit(),
        )
        worker, seq, sent_at = self.worker, self._seq, self._world.loop.time()
        self._line.send(
            lambda engine: engine.sync(worker, request),
            lambda reply: self._answered(reply, seq, sent_at, started, reports),
            self._sync,
            request.wait_ms + PATIENCE_MS,
        )

    def _ask_to_start(self) -> dict[Key, Assignment]:
        free = self.traits.slots - len(self._running) - len(self._starting)
        for key in list(self._waiting)[: max(0, free)]:
            self._starting[key] = self._waiting.pop(key)
        return dict(self._starting)

    def _want(self) -> int:
        if self._draining:
            return 0
        ahead = len(self._waiting) + len(self._starting) + len(self._running)
        return max(0, self.traits.slots + self.traits.prefetch - ahead)

    def _audit(self) -> tuple[Held, ...] | None:
        now = self._world.loop.time()
        if now - self._audited_at < self._world.config.heartbeat_interval_ms / 1000:
            return None
        self._audited_at = now
        return tuple(Held(*key) for key in (*self._waiting, *self._starting, *self._running))

    def _answered(
        self, reply: Any, seq: int, sent_at: float, started: dict[Key, Assignment],
        reports: dict[Key, Finished | Released],
    ) -> None:  # fmt: skip
        if isinstance(reply, NotFound) or (
            isinstance(reply, Conflict) and reply.code == "incarnation_ended"
        ):
            self._begin_anew()
        elif isinstance(reply, UnreachableError):
            self._line.later(self._world.between(200, 1_000), self._sync)
        elif isinstance(reply, WindlassError):
            if reply.code not in ("store_unavailable", "overloaded"):
                self._world.found("protocol", f"sync {seq} of {self.traits.name}: {reply}")
            self._line.later(self._world.between(100, 1_000), self._sync)
        elif not reply.applied:
            self._line.later(self._world.between(1, 50), self._sync)
        else:
            self._obey(reply, sent_at, started, reports)
            self._line.later(self._world.between(0, 20), self._sync)

    def _begin_anew(self) -> None:
        """This incarnation is over: stop everything, then enrol again."""
        self._world.faults["incarnation_ended"] += 1
        self._keeper.kill_all()
        self._keeper = Keeper(self._world)
        self._forget()
        self._enrol(takeover=True)

    def _obey(
        self, reply: SyncReply, sent_at: float, started: dict[Key, Assignment],
        reports: dict[Key, Finished | Released],
    ) -> None:  # fmt: skip
        self._keeper.extend(sent_at)
        for key in reports:
            self._reports.pop(key, None)
        for refusal in reply.lost:
            self._lose((refusal.job, refusal.attempt))
        for key, assignment in started.items():
            if self._starting.pop(key, None) is not None:
                self._launch(key, assignment)
        for assignment in reply.jobs:
            self._take(assignment)
        for stop in reply.cancel:
            self._stop((stop.job, stop.attempt))
        self._draining = reply.drain
        if reply.drain:
            for key in list(self._waiting):
                del self._waiting[key]
                self._reports[key] = Released(*key)

    def _lose(self, key: Key) -> None:
        """`lease_lost`: kill the process, report nothing."""
        self._world.faults["lease_lost"] += 1
        self._waiting.pop(key, None)
        self._starting.pop(key, None)
        self._reports.pop(key, None)
        process = self._running.pop(key, None)
        if process is not None:
            process.kill()

    def _take(self, assignment: Assignment) -> None:
        key = assignment.job, assignment.attempt
        self._received = max(self._received, assignment.lease)
        if self._world.fault("declined", self.traits.declines):
            self._reports[key] = Released(*key, reason="simulated: not on this machine")
        elif assignment.state == "assigned":
            self._waiting[key] = assignment
        elif assignment.state == "running":
            self._launch(key, assignment)
        else:
            self._reports[key] = Finished(*key, outcome="canceled")

    def _stop(self, key: Key) -> None:
        process = self._running.get(key)
        if process is not None:
            process.stop("canceled", self._world.config.term_grace_ms)
        elif key not in self._reports:
            self._reports[key] = Released(*key)

    # Processes

    def _launch(self, key: Key, assignment: Assignment) -> None:
        if self._keeper.expired:
            self._reports[key] = Released(*key, reason="no server answered")
            return
        ended = self._line.when_awake(self._process_ended)
        process = Process(self._world, self._processes, key, self.traits.name, ended)
        self._running[key] = process
        self._keeper.keep(process)
        plan = plan_of(assignment)
        if (plan.poison and not self._world.calm) or self._world.fault(
            "died_with_job", self.traits.dies_with_job
        ):
            self._die_soon()
        duration, outcome = self._draw(plan, assignment.timeout_ms)
        process.run(duration, outcome)

    def _draw(self, plan: Plan, timeout_ms: int) -> tuple[int, str]:
        outcome = draw_outcome(self.traits, self._world.chance)
        if timeout_ms and plan.ms > timeout_ms:
            if not self._world.fault("timeout_forgotten", self.traits.forgets_timeouts):
                return timeout_ms, "timed_out"
            return 10 * plan.ms, "completed"
        return plan.ms, outcome

    def _die_soon(self) -> None:
        def die() -> None:
            self.crash(keeper_lingers=False)
            self._world.after(self._world.between(500, 8_000), self.start, True)

        self._world.after(self._world.between(1, 500), self._line.when_awake(die))

    def _process_ended(self, process: Process, outcome: str) -> None:
        key = process.key
        if self._running.get(key) is not process:
            return
        del self._running[key]
        self._reports[key] = report_of(key, outcome)
        if self._incarnation:
            self._line.later(self._world.between(0, 10), self._sync)
