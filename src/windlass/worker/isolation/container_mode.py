"""The mode `container`: each program of a job runs in a container of its own.

The keeper starts the engine's program instead of the job's, as it starts every program. The
container is removed before the end of the program is reported, so that no second attempt can start
beside it. A folder per container holds its variables and says how to remove it: with that the
keeper, its guard or the next agent end a container whose agent was killed.
"""

import hashlib
import os
import re
import resource
import shutil
import signal
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec
import structlog

from windlass.domain.matching.isolation import Isolation
from windlass.domain.values.errors import InvalidInput
from windlass.ports.clock import Clock
from windlass.ports.executor import Limits
from windlass.worker.isolation.confinement import Confinement, ConfinementFailed, Wish
from windlass.worker.isolation.container_arguments import (
    SCRATCH,
    SOCKET,
    Container,
    divide_variables,
    run_arguments,
)
from windlass.worker.isolation.container_engine import (
    MAX_S,
    STARTED_BY,
    Engine,
    EngineAway,
    Images,
    Ran,
    end_pause,
    find_engine,
    run,
    write_private,
)
from windlass.worker.isolation.reporter import reporter_program
from windlass.worker.keeper.group import reported_end
from windlass.worker.keeper.kept_process import Ended, Program
from windlass.worker.keeper.launch import Start
from windlass.worker.keeper.outside import ENDER, has_ended
from windlass.worker.keeper.processes import out_of_memory_kills

AGENT: Final = "WINDLASS_AGENT"  # the variable that says where the job socket is
OUTPUTS: Final = "WINDLASS_OUTPUTS"  # the variable that says where outputs are written
NOT_STARTED: Final = (125, 126, 127)  # exit codes of engines if no program was started
SIGNALED: Final = 128  # added to the number of the signal that ended a program
SIGNALS: Final = 64
REPORTER: Final = "reporter"  # a file next to the folder of containers
REPORT: Final = "report"  # a file in each container's folder
REPORT_LIMIT: Final = 64  # bytes; the program can write into it as well
CUDA: Final = "CUDA_VISIBLE_DEVICES"
PAUSE_MS: Final = 1_000  # between attempts to remove a container
NEVER: Final = "0001-01-01"  # start time of a container that never started
PROGRAM_MISSING: Final = 127
# What runtimes print about a program that is not in the image or cannot run.
MISSING: Final = re.compile(
    "executable file not found|exec format error|is a directory|exec: .*(no such file|denied)"
)
# What the first process of a container prints if it cannot start the program.
INIT_FAILED: Final = re.compile(rb"(catatonit|tini|windlass)\b.*(failed to exec|exec .* failed)")

log = structlog.get_logger()


class ContainerMode:
    """Implements `IsolationMode`. `folder` is the agent's own; `marker` identifies its jobs.

    `setting` names the engine and `variables` what all jobs see, as in the worker's options.
    """

    name: Isolation = "container"

    def __init__(
        self, setting: str, environ: Mapping[str, str], folder: Path, marker: tuple[str, str],
        clock: Clock, variables: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        self._setting = setting
        self._environ = {**environ, STARTED_BY: marker[1]}
        self.clock = clock
        self.folder = folder
        self.marker = marker
        self.variables = dict(variables or {})
        self.engine: Engine | None = None
        self.images: Images | None = None
        self.reporter: Path | None = None

    async def why_not(self) -> str | None:
        """Checks the engine; returns why there is none."""
        found = await find_engine(self._setting, self._environ)
        if isinstance(found, str):
            return found
        self.engine = found
        self.images = Images(found)
        self.reporter = place_reporter(self.folder.with_name(REPORTER))
        return None

    @property
    def metadata(self) -> dict[str, object]:
        """Returns what the server is told about the engine."""
        return {} if self.engine is None else self.engine.metadata

    def enter(self, wish: Wish) -> Confinement:
        """Returns the confinement that starts the containers of one attempt."""
        if wish.image is None:
            raise InvalidInput("image", "the image of a job that runs in a container", "nothing")
        return Contained(self, wish, wish.image)

    async def close(self) -> None:
        """Ends the process that rootless podman keeps for the next command."""
        if self.engine is not None and self.engine.maps_users:
            await end_pause(self.marker[1], self.clock)


class Contained:
    """Implements `Confinement`: the containers of one attempt."""

    def __init__(self, mode: ContainerMode, wish: Wish, image: str) -> None:
        assert mode.engine is not None
        assert mode.images is not None
        self._mode = mode
        self._engine = mode.engine
        self._images = mode.images
        self._wish = wish
        self._image = image
        self._programs: dict[str, str] = {}  # their programs, by container name
        self._made = 0
        self._starved = 0  # processes that had been killed for lack of memory before it began
        self._places: dict[str, Path] = {}  # the folders of containers that may exist, by name

    async def wrap(self, program: Program) -> Program:
        """Returns the engine's program that runs this one; fetches the image."""
        wish = self._wish
        if Path(program.cwd) != wish.scratch:
            raise InvalidInput("cwd", "the scratch directory for a job in a container", program.cwd)
        if wish.devices and CUDA not in program.env:
            message = "only GPUs of NVIDIA can be given to a container"
            raise ConfinementFailed("configuration", message)
        name, place = self._prepare()
        await self._images.provide(self._image, wish.pull, place, wish.credentials, wish.note)
        self._starved = out_of_memory_kills()
        variables = divide_variables(self._variables(program.env), wish.secrets)
        write_private(place / "env", variables.file)
        (place / REPORT).touch()
        (place / REPORT).chmod(0o666)  # The user in the container may be another.
        container = Container(
            name=name, state=state_name(self._mode.marker[1]), job=wish.job, attempt=wish.attempt,
            image=self._image, argv=program.argv, scratch=str(wish.scratch),
            socket=None if wish.socket is None else str(wish.socket),
            env_file=str(place / "env"), variables=variables.named, network=wish.network,
            owner=(os.geteuid(), os.getegid()), limits=program.limits, gpus=wish.devices,
            open_files=open_files(program.limits),
            reporter=None if self._mode.reporter is None else str(self._mode.reporter),
            report=str(place / REPORT),
        )  # fmt: skip
        self._programs[name] = program.argv[0]
        marked = dict((self._mode.marker, ("WINDLASS_JOB", str(wish.job))))
        return msgspec.structs.replace(
            program,
            argv=(*self._engine.command, *run_arguments(self._engine, container)),
            env={**self._engine.env, **variables.inherited, **marked},
            whole=True,
            start=Start(outside=name),
        )

    async def settle(self, program: Program, ended: Ended, output: bytes) -> Ended:
        """Removes the container of an ended program; returns how the program itself ended."""
        name = program.start.outside
        # What the daemon reports outweighs the end of the client program.
        asks = ended.code or (ended.code == 0 and self._engine.kind != "podman")
        state = await self._look(name) if asks else None
        status = self._read_report(name)
        await self._remove(name)
        await self._own_files()
        what = f"{self._programs.pop(name, 'the program')} in the image {self._image}"
        if state is not None and state.status == "running":
            message = f"{self._engine.kind} lost sight of {what} while it ran"
            raise ConfinementFailed("network", message)
        if ended.code and (ended.code in NOT_STARTED if state is None else not state.ran):
            raise start_failure(what, ended.code, output)
        if ended.code and INIT_FAILED.search(output):
            raise start_failure(what, PROGRAM_MISSING, output)
        return self._judged(ended, state, status)

    def _read_report(self, name: str) -> int | None:
        """Returns how the program ended, from the reporter's file; None without one."""
        try:
            with (self._places[name] / REPORT).open("rb") as file:
                return reported_end(file.read(REPORT_LIMIT))
        except (KeyError, OSError):
            return None

    def _judged(self, ended: Ended, state: "State | None", status: int | None) -> Ended:
        """Returns the end of a program that ran, by its wait status, or else by its exit code."""
        code, number = ended.code, ended.signal
        if code is not None and state is not None and state.exit_code is not None:
            code = state.exit_code
        if code is not None and status is not None:
            code, number = (status, None) if status >= 0 else (None, -status)
        elif code is not None and SIGNALED < code <= SIGNALED + SIGNALS:
            number, code = code - SIGNALED, None
        starved = ended.out_of_memory or (state is not None and state.oom_killed)
        if number == signal.SIGKILL and ended.signal is None:
            starved = starved or out_of_memory_kills() > self._starved
        over = "cpu_time" if number == signal.SIGXCPU else ended.over
        return msgspec.structs.replace(
            ended, code=code, signal=number, out_of_memory=starved, over=over
        )

    async def leave(self) -> None:
        """Removes what is left of its containers; the next agent does if the engine is away."""
        for name in list(self._places):
            if await self._try_to_remove(name) is not None:
                log.warning("container_left", name=name, engine=self._engine.kind)

    def _prepare(self) -> tuple[str, Path]:
        """Makes the folder of the next container, which says how to end it."""
        self._made += 1
        wish = self._wish
        state = state_name(self._mode.marker[1])
        name = f"windlass-{state}-{wish.job}-{wish.attempt}-{self._made}"
        place = self._mode.folder / name
        self._mode.folder.mkdir(mode=0o700, exist_ok=True)
        place.mkdir(mode=0o700, exist_ok=True)
        ender = [*self._engine.command, *self._engine.removal(name)], self._engine.env
        write_private(place / ENDER, msgspec.json.encode(ender).decode())
        self._places[name] = place
        return name, place

    def _variables(self, env: Mapping[str, str]) -> dict[str, str]:
        """Returns the environment of the program, with the paths inside its container."""
        found = {**self._mode.variables, **env}
        if AGENT in found:
            found[AGENT] = SOCKET
        if OUTPUTS in found:
            found[OUTPUTS] = f"{SCRATCH}/{Path(found[OUTPUTS]).name}"
        if CUDA in found:
            # It has only its own GPUs, which are counted from 0.
            found[CUDA] = ",".join(map(str, range(len(self._wish.devices))))
        return found

    async def _look(self, name: str) -> "State | None":
        """Returns the engine's state of a container; None if there is none."""
        ran = await self._engine.run(
            "inspect", "--type", "container", "--format", "{{json .State}}", name
        )
        if ran.code != 0:
            return None
        try:
            return msgspec.json.decode(ran.output, type=State)
        except msgspec.MsgspecError:
            return State()

    async def _remove(self, name: str) -> None:
        """Removes a container; tries until it is gone, since it must not outlive its attempt."""
        while (why := await self._try_to_remove(name)) is not None:
            log.warning("container_not_removed", name=name, reason=why)
            await self._mode.clock.sleep_ms(PAUSE_MS)

    async def _try_to_remove(self, name: str) -> str | None:
        """Removes a container and its folder; returns why it could not."""
        place = self._places.get(name)
        if place is None:
            return None
        try:
            ran = await self._engine.run(*self._engine.removal(name))
        except EngineAway as error:
            return error.message
        if not has_ended(ran.code, ran.errors.encode()):
            return ran.reason
        shutil.rmtree(place, ignore_errors=True)
        self._places.pop(name, None)
        return None

    async def _own_files(self) -> None:
        """Changes the owner of files of the container's other users to the worker, which has to
        read them.

        Only rootless podman lets a program become another user: one below the worker's own.
        """
        if not self._engine.maps_users:
            return
        scratch, user = str(self._wish.scratch), str(os.geteuid())
        strange = await run(
            ["find", scratch, "!", "-uid", user, "-print", "-quit"], self._engine.env, MAX_S
        )
        if strange.output:
            await self._engine.run("unshare", "chown", "-hR", "0:0", "--", scratch)


class State(msgspec.Struct, rename="pascal"):
    """The state of a container as reported by the engine."""

    status: str = ""
    started_at: str = ""
    exit_code: int | None = None
    oom_killed: bool = msgspec.field(name="OOMKilled", default=False)

    @property
    def ran(self) -> bool:
        """Returns whether its program was started."""
        return self.status not in ("created", "initialized") and NEVER not in self.started_at


def place_reporter(file: Path) -> Path | None:
    """Writes the reporter where containers can start it; returns None if they cannot."""
    program = reporter_program(os.uname().machine)
    if program is None:
        return None
    file.unlink(missing_ok=True)
    file.write_bytes(program)
    file.chmod(0o555)
    return None if os.statvfs(file).f_flag & os.ST_NOEXEC else file


def open_files(limits: Limits | None) -> int:
    """Returns how many files a process in a container may have open: at most as many as ours."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    return min(most, limits.open_files) if limits and limits.open_files else most


def state_name(marker: str) -> str:
    """Returns a short name for an agent's directory, for the names of its containers."""
    return hashlib.sha256(marker.encode(errors="surrogateescape")).hexdigest()[:12]


def start_failure(what: str, code: int | None, output: bytes) -> ConfinementFailed:
    """Returns what the failure of an engine to start a program means, from its output."""
    ran = Ran(code or 0, "", output.decode(errors="replace"))
    message = f"cannot start {what}: {ran.reason}"
    wrong = code == PROGRAM_MISSING or MISSING.search(ran.errors)
    return ConfinementFailed("configuration" if wrong else "resource", message)
