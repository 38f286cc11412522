"""The agent: the process of one worker. It runs the agent core on this machine until stopped."""

import asyncio
import os
import signal
from collections.abc import Mapping
from typing import Any

import structlog

from windlass.domain.job.job import DEFAULT_NAMESPACE
from windlass.domain.matching.clauses import resource_key
from windlass.domain.matching.indices import GPUS, VENDOR, without_shared
from windlass.domain.matching.isolation import WEAKEST
from windlass.domain.matching.shapes import NAMESPACES
from windlass.ports.clock import Chance, Clock
from windlass.ports.executor import Executor
from windlass.ports.gateway import Gateway
from windlass.worker.agent.gpus import GpuLocks, find_gpus
from windlass.worker.agent.machine import LocalMachine
from windlass.worker.agent.metadata import Jobs, gather, jobs_in, quick_facts
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.agent.state import StateDirectory
from windlass.worker.core.agent_core import AgentCore
from windlass.worker.core.ports import Ports
from windlass.worker.keeper.processes import boottime

WHY_ONE = (
    "with isolation process, jobs can read each other's files: --namespaces a,b lets the "
    "worker take jobs of these namespaces, '*' of all"
)

log = structlog.get_logger()


class Agent:
    """One worker's process. `machine` runs its jobs, `core` decides.

    `state` is the directory in the options, if the caller has opened it.
    """

    def __init__(
        self,
        gateway: Gateway,
        options: WorkerOptions,
        executors: Mapping[str, Executor],
        clock: Clock,
        chance: Chance,
        state: StateDirectory | None = None,
    ) -> None:
        self._options = options
        self._executors = executors
        self._gpu_locks = GpuLocks()
        self.machine = LocalMachine(
            gateway, options, executors, clock, self.stop, self._tell_functions, state
        )
        ports = Ports(gateway, clock, chance, boottime)
        self.core = AgentCore(ports, self.machine, options.slots, options.drain_limit_ms)

    @property
    def worker(self) -> int:
        """Returns its id at the server; 0 before it has enrolled."""
        return self.core.worker

    @property
    def incarnation(self) -> int:
        """Returns the number of its incarnation; 0 before it has enrolled."""
        return self.core.incarnation

    @property
    def enrolled(self) -> asyncio.Event:
        """Is set while an incarnation is active."""
        return self.core.enrolled

    @property
    def keeper_pid(self) -> int:
        """Returns the pid of the process that watches over the jobs."""
        return self.machine.keeper_pid

    # Stopping

    def drain(self) -> None:
        """Takes no more jobs, lets running ones finish, and stops."""
        self.core.drain()

    def stop(self) -> None:
        """Stops all running jobs, hands them back, and stops."""
        self.core.stop()

    def obey_signals(self) -> None:
        """Drains on SIGTERM and SIGINT, and stops at once on a second SIGINT."""
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.drain)
        loop.add_signal_handler(signal.SIGINT, self._interrupt)

    def _interrupt(self) -> None:
        if self.core.stopping:
            self.stop()
        else:
            log.info("draining", message="waiting for running jobs; interrupt again to stop them")
            self.drain()

    # Life

    async def run(self) -> None:
        """Works until drained or stopped."""
        gathering: asyncio.Task[None] | None = None
        try:
            await self.machine.open()
            if self._serves_one:
                log.info("serves_one_namespace", namespace=DEFAULT_NAMESPACE, message=WHY_ONE)
            self._describe({**quick_facts(self._jobs), **await self._find_gpus()})
            gathering = asyncio.get_running_loop().create_task(self._gather())
            await self.core.run()
        finally:
            if gathering is not None:
                gathering.cancel()
                await asyncio.wait((gathering,))
            await self.machine.close()
            self._gpu_locks.close()

    @property
    def _serves_one(self) -> bool:
        """Returns whether it takes jobs of one namespace only: they can read each other's files."""
        options = self._options
        is_open = self.machine.isolation.default == WEAKEST and not options.trusts_jobs
        return is_open and not options.namespaces

    @property
    def _jobs(self) -> Jobs:
        """Returns how jobs start programs here; the server hears only of tools they can use."""
        return jobs_in(self.machine.isolation)

    async def _find_gpus(self) -> dict[str, Any]:
        """Looks for GPUs that no other worker of this machine has claimed.

        If the options name GPUs, whoever starts the workers divides them.
        """
        named = resource_key(GPUS) in self._options.metadata
        return await find_gpus(os.environ, (lambda _: True) if named else self._gpu_locks.take)

    async def _gather(self) -> None:
        """Looks at the machine and its tools, and tells the server."""
        try:
            await self.machine.find_containers()
            if found := self.machine.containers.metadata:
                self._describe(found)
                self.core.tell_metadata(self.machine.metadata)
            self._describe({**await gather(self._jobs), **self.machine.limit_mechanisms})
            self.core.tell_metadata(self.machine.metadata)
        except Exception:  # The worker runs jobs without it.
            log.exception("machine_not_described")

    def _tell_functions(self) -> None:
        """Tells the server about functions that turned out to be missing."""
        self._describe({})
        self.core.tell_metadata(self.machine.metadata)

    def _describe(self, found: dict[str, Any]) -> None:
        """Adds what was found to the metadata; the options override it."""
        machine, tasks = self.machine, sorted(self._executors)
        told = {**self._options.secrets.metadata, **self._options.metadata}
        if self._serves_one:
            told.setdefault(NAMESPACES, [DEFAULT_NAMESPACE])
        elif self._options.namespaces:
            told[NAMESPACES] = list(self._options.namespaces)
        found = without_shared(found, told)
        own = {"tasks_allowlist": tasks, **machine.isolation.metadata, **machine.functions}
        machine.metadata = {**machine.metadata, **own, **found, **told}
        machine.index_use.vendor = machine.metadata.get(VENDOR)
