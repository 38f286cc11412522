"""The machine a worker runs on: its state directory, keeper, scratch folders and executors."""

import asyncio
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
import structlog
from msgspec.structs import replace

from windlass.domain.matching.isolation import MODES, WEAKEST
from windlass.domain.values.errors import InvalidInput
from windlass.executors.python.code_store import CodeStore, search_path
from windlass.executors.python.executor import PythonExecutor
from windlass.messages.sync import EnrolReply, EnrolRequest, Finished, Stopped
from windlass.ports.clock import Clock
from windlass.ports.executor import Executor, Limits
from windlass.ports.gateway import Gateway
from windlass.tasks.task import PYTHON
from windlass.tracing.exporting import start_tracing
from windlass.worker.agent.environment import job_environment, without_own
from windlass.worker.agent.metadata import mechanisms
from windlass.worker.agent.options import WorkerOptions
from windlass.worker.agent.state import Memory, StateDirectory, StateUnusable
from windlass.worker.attempt.context import AgentContext, IndexUse
from windlass.worker.attempt.job_socket import JobSocket
from windlass.worker.attempt.records import Records
from windlass.worker.attempt.starter import AttemptStarter
from windlass.worker.core.ports import Deadline
from windlass.worker.isolation.confinement import IsolationMode, Wish
from windlass.worker.isolation.container_engine import end_outside
from windlass.worker.isolation.container_mode import ContainerMode
from windlass.worker.isolation.job_users import PASSABLE, JobUsers, readable_by_all
from windlass.worker.isolation.modes import Modes
from windlass.worker.isolation.process import (
    OPEN,
    OWN_FILES,
    SIGNALS,
    Hiding,
    UserMode,
    choose_hiding,
    hide,
    present,
    signals_kept_by,
)
from windlass.worker.isolation.sandbox import SandboxMode, Visible, own_python, visible_folders
from windlass.worker.keeper.cgroups import find_cgroup
from windlass.worker.keeper.client import MARKER, KeeperClient, kill_leftovers
from windlass.worker.keeper.kept_process import KeptProcess, Program
from windlass.worker.keeper.launch import Start
from windlass.worker.keeper.scratch import Scratch

KILL_PATIENCE_MS = 10_000
LAST_WORDS_S = 2  # time for executors to end their processes; the keeper ends the rest
STOPPED_LIMIT = 500_000  # bytes of results
PYTHON_PATH = "PYTHONPATH"
NO_JOB = -1
FILTER = "system-calls"  # the sandbox's system call filter, in the state directory

log = structlog.get_logger()


class LocalMachine:
    """Implements `Machine` with real processes and files.

    `unfit` is called when processes of jobs can neither be watched nor killed, `functions_changed`
    when more is known about functions.
    """

    def __init__(
        self,
        gateway: Gateway,
        options: WorkerOptions,
        executors: Mapping[str, Executor],
        clock: Clock,
        unfit: Callable[[], None],
        functions_changed: Callable[[], None] = lambda: None,
        state: StateDirectory | None = None,
    ) -> None:
        self.metadata: dict[str, Any] = {}
        self._gateway = gateway
        self._options = options
        self._executors = executors
        # The one that imports functions, and has processes that serve many jobs.
        python = executors.get(PYTHON)
        self._python = python if isinstance(python, PythonExecutor) else None
        self._clock = clock
        self._records = Records(clock, start_tracing("windlass-worker"))
        self._unfit = unfit
        self._functions_changed = functions_changed
        self._state = state or StateDirectory(options.state)
        base = job_environment(os.environ, {MARKER: self._state.marker}, options.variables)
        cgroup = _find_cgroup(options.cgroup)
        self._has_cgroup = cgroup is not None
        self._keeper = KeeperClient(self._state.record, base, self._keeper_died, cgroup)
        self._scratch = Scratch(self._state.scratch, self._keeper.remove)
        self._users = JobUsers(self._state.path, options.uids)
        self._socket = JobSocket(self._state.path)
        self._user_socket: JobSocket | None = None  # for jobs that run as other users
        self.index_use = IndexUse(options.pins)
        self.isolation = Modes()
        self.containers = ContainerMode(
            options.container_engine, os.environ, self._state.containers,
            (MARKER, self._state.marker), clock, without_own(options.variables),
        )  # fmt: skip
        self._deadline: tuple[float, float] | None = None
        self._recovering: asyncio.Task[None] | None = None
        self._attached = False
        self._proven = False  # nothing of an older incarnation is left

    @property
    def keeper_pid(self) -> int:
        """Returns the pid of the process that watches over the jobs."""
        return self._keeper.pid

    @property
    def limit_mechanisms(self) -> dict[str, str]:
        """Returns how job limits are enforced, once the keeper has reported what it has."""
        return mechanisms(self._keeper.controllers, self._has_cgroup, self.isolation.default)

    @property
    def functions(self) -> dict[str, Any]:
        """Returns what is known about Python functions here."""
        return {} if self._python is None else self._python.functions

    def changed_file(self) -> str | None:
        """Returns a file that functions here came from and that has changed since."""
        return None if self._python is None else self._python.changed_file()

    def missing_files(self) -> dict[str, str | None]:
        """Returns the modules that it lacked, with the files that exist for them now."""
        return {} if self._python is None else self._python.missing_files()

    async def open(self) -> None:
        """Kills what an older agent left behind, and starts the keeper."""
        await self._find_modes()
        self._proven = await self._kill_leftovers()
        with self._state.writing():
            self._keeper.start()
            for scratch in (self._scratch, *self.isolation.scratch.values()):
                scratch.prepare()
            self._socket.open()
            if self._user_socket is not None:
                self._user_socket.open()
        self._keep_jobs_out()

    async def close(self) -> None:
        """Ends every process and releases the state directory."""
        await self._close_executors()
        self._records.close()
        self._keeper.close()
        self._keeper.drop_walls()
        await self.isolation.close()
        await self.containers.close()
        await self._socket.close()
        if self._user_socket is not None:
            await self._user_socket.close()
        self._users.close()
        self._state.close()

    async def _find_modes(self) -> None:
        """Finds out how jobs can be isolated here."""
        options = self._options
        users = self._users
        with self._state.writing():
            lacking = users.open()
        visible = visible_folders(options.shares, (self._state.path, *options.hides))
        if lacking is None:
            self.isolation.other_users = MODES[1:] if users.is_root else ("user",)
            self._user_socket = JobSocket(users.place.path, True)
            own = Scratch(users.place.scratch, self._keeper.remove, PASSABLE)
            self.isolation.scratch["user"] = own
        if users.namespace >= 0:
            self._keeper.use_users(users.namespace)
        candidates: list[IsolationMode] = [
            UserMode(users.uids, lacking),
            SandboxMode(visible, self._state.path / FILTER, users.uids),
        ]
        if options.isolation == self.containers.name:
            candidates.append(self.containers)  # Otherwise it is asked when there is time.
        await self.isolation.look(options.isolation, candidates)
        self._keep_code(visible, lacking is None)

    def _keep_code(self, visible: Visible, has_users: bool) -> None:
        """Makes all functions import the same version of their code."""
        mode = self.isolation.default
        others = has_users and mode in self.isolation.other_users

        def readable(file: str) -> bool:
            shown = mode in ("process", "user") or visible.shows(file)
            return shown and (not others or readable_by_all(file))

        base, here = self._keeper.base.get(PYTHON_PATH), Path.cwd()
        if here.is_relative_to(Path.home()) and not readable(str(here)):
            log.warning(
                "folder_hidden_from_jobs",
                message=f"jobs cannot read {here}, where this worker was started: start it in a "
                "folder outside your home, or with --isolation process",
            )
        if self._python is not None:
            path = search_path(self._python.import_path or base, sys.path)
            self._python.keep_code(CodeStore(path, readable))
            self._python.missing.changed = self._functions_changed
            self._python.missing.unseen = None if readable(str(here)) else here

    def _keep_jobs_out(self) -> None:
        """Keeps jobs that run as the worker's user apart, and away from Windlass's own files."""
        modes, options = self.isolation, self._options
        if options.trusts_jobs:
            modes.walls = {OWN_FILES: OPEN, SIGNALS: OPEN}
            return
        folders = present((self._state.path, *options.hides))
        hiding = choose_hiding(folders)
        needed = (self._state.scratch, self._socket.path, *own_python())
        try:
            hide(self._keeper, hiding.way, folders, [path for path in needed if path is not None])
        except OSError as error:
            hiding = Hiding(OPEN, error.strerror or str(error))
        modes.walls = {OWN_FILES: hiding.way, SIGNALS: signals_kept_by()}
        modes.plain = Start(apart=True, kept_out=hiding.way != OPEN)
        if hiding.reason and modes.default == WEAKEST:
            log.warning("own_files_open_to_jobs", reason=hiding.reason)

    async def _close_executors(self) -> None:
        """Closes them while the keeper can still answer; it ends whatever they leave."""
        loop = asyncio.get_running_loop()
        closing = [loop.create_task(e.close()) for e in self._executors.values()]
        if closing:
            _, late = await asyncio.wait(closing, timeout=LAST_WORDS_S)
            for task in late:
                task.cancel()

    # Incarnations

    @property
    def epoch(self) -> int:
        return self._state.memory.epoch

    def introduce(self) -> EnrolRequest:
        return EnrolRequest(
            name=self._options.name, slots=self._options.slots, metadata=self.metadata,
            takeover=self._proven, replaces=self._state.memory.incarnation,
            code=self._options.code, stopped=self._state.stopped,
        )  # fmt: skip

    def set_deadline(self, soft: float, hard: float) -> None:
        self._deadline = soft, hard
        self._keeper.set_deadline(soft, hard)

    def begin(self, reply: EnrolReply, deadline: Deadline) -> AttemptStarter:
        known = self._state.memory
        if not self._options.keeps_token:
            known = Memory(epoch=known.epoch)
        epoch = max(known.epoch, reply.epoch)
        self._state.remember(replace(known, incarnation=reply.incarnation, epoch=epoch))
        self._state.forget_stop()
        self._keeper.grace_ms = reply.term_grace_ms
        context = AgentContext(
            self._records, self._gateway, self._keeper, self._scratch, self._clock, reply.worker,
            reply.incarnation, reply.log_limit, reply.term_grace_ms, deadline,
            self._options.secrets, self._socket, self.index_use, self.isolation,
            self._user_socket, self._options.limits, reply.result_limit,
        )  # fmt: skip
        self._attach()
        return AttemptStarter(context, self._executors)

    def end_incarnation(self) -> None:
        """Replaces the keeper by a new one: the old one kills everything it started."""
        self._deadline = None
        self._keeper.close()
        self._keeper.start()
        self._proven = True

    def note_stop(self, finished: Sequence[Finished]) -> None:
        stopped = Stopped(self._state.memory.incarnation, _within_limit(finished))
        try:
            self._state.note_stop(stopped)
        except StateUnusable as error:
            log.warning("stop_not_recorded", error=error.message)

    # Processes

    def _attach(self) -> None:
        """Lets functions have processes, now that there is a deadline."""
        if self._attached or self._python is None:
            return
        self._attached = True
        self._python.attach(self._spawn, self._options.slots)
        if hasattr(self._gateway, "woken"):
            self._gateway.woken = self._python.expect

    async def _spawn(
        self,
        argv: Sequence[str],
        *,
        env: Mapping[str, str],
        cwd: Path,
        limits: Limits | None = None,
        stdin: int | None = None,
    ) -> KeptProcess:
        """Starts a process for no job in particular; it sees `env` besides what all jobs see."""
        if self.isolation.default == WEAKEST:
            program = Program(
                argv=tuple(argv), env=dict(env), cwd=str(cwd), limits=limits,
                start=self.isolation.plain,
            )  # fmt: skip
            process = self._keeper.spawn(program, stdin=stdin)
        else:
            process = await self._spawn_confined(argv, dict(env), limits, stdin)
        await process.started()
        return process

    async def find_containers(self) -> None:
        """Checks whether the container engine works, which takes too long to do at startup."""
        await self.isolation.add(self.containers)

    async def _spawn_confined(
        self, argv: Sequence[str], env: dict[str, str], limits: Limits | None, stdin: int | None
    ) -> KeptProcess:
        """Starts it in the worker's own isolation mode, in a folder of its own."""
        modes = self.isolation
        scratch = modes.scratch.get(modes.default, self._scratch)
        folder = scratch.take()
        confinement = modes[modes.default].enter(Wish(job=NO_JOB, attempt=0, scratch=folder))
        path = env.get(PYTHON_PATH) or self._keeper.base.get(PYTHON_PATH)
        env[PYTHON_PATH] = os.pathsep.join(filter(None, (os.getcwd(), path)))
        program = await confinement.wrap(
            Program(argv=tuple(argv), env=env, cwd=str(folder), make=True, limits=limits)
        )
        process = self._keeper.spawn(program, stdin=stdin)

        async def over() -> None:
            await process.gone()
            scratch.give_back(folder, process.ended is None or process.ended.dirty)

        modes.leave(confinement, over)
        return process

    async def _kill_leftovers(self) -> bool:
        killed = await kill_leftovers(
            self._state.record, self._state.marker, self._clock, KILL_PATIENCE_MS
        )
        return await end_outside(self._state.containers) and killed

    def _keeper_died(self) -> None:
        self._recovering = asyncio.get_running_loop().create_task(self._recover())

    async def _recover(self) -> None:
        """Kills the jobs of a dead keeper, hands them back, and starts another keeper."""
        log.error("keeper_died")
        if not await self._kill_leftovers():
            log.error("processes_survive", message="jobs of the dead keeper cannot be killed")
            self._unfit()
            return
        self._keeper.fail_all()
        self._keeper.start()
        if self._deadline is not None:
            self._keeper.set_deadline(*self._deadline)


def _within_limit(finished: Sequence[Finished]) -> tuple[Finished, ...]:
    """Returns as many results as an enrolment may carry; the other jobs run again."""
    kept, size = [], 0
    for report in finished:
        size += len(msgspec.json.encode(report))
        if size <= STOPPED_LIMIT:
            kept.append(report)
    return tuple(kept)


def _find_cgroup(setting: str) -> str | None:
    try:
        return find_cgroup(setting)
    except ValueError as error:
        expected = "auto, off, or a cgroup v2 folder that this user may write to"
        raise InvalidInput("cgroup", expected, setting) from error
