"""The modes that a worker offers, which of them it uses, and why it lacks the others."""

import asyncio
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import structlog

from windlass.domain.matching.isolation import (
    DEFAULT,
    MODES,
    OFFERED,
    WEAKEST,
    Isolation,
    strongest,
)
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.worker.isolation.confinement import Confinement, IsolationMode
from windlass.worker.isolation.job_users import try_users
from windlass.worker.isolation.process import ProcessMode, UserMode
from windlass.worker.isolation.sandbox import SandboxMode, Visible
from windlass.worker.keeper.launch import PLAIN
from windlass.worker.keeper.scratch import Scratch

AUTO: Final = "auto"  # the first working one of `AUTOMATIC`
AUTOMATIC: Final[tuple[Isolation, ...]] = ("sandbox", "process")

LAST_WORDS_S: Final = 5

log = structlog.get_logger()


async def find_modes() -> "Modes":
    """Returns what this machine supports for a worker of this user, without starting one."""
    modes = Modes()
    with tempfile.TemporaryDirectory(prefix="windlass-") as folder:
        uids, lacking = try_users()
        filter_file = Path(folder) / "system-calls"
        candidates = (UserMode(uids, lacking), SandboxMode(Visible(), filter_file, uids))
        await modes.look(WEAKEST, candidates)
    return modes


class Modes:
    """What this machine supports. `default` is also the weakest mode that this worker uses."""

    def __init__(self, default: Isolation = WEAKEST) -> None:
        self.default = default
        self.lacking: Mapping[Isolation, str] = {}  # why it lacks the others
        self.scratch: dict[Isolation, Scratch] = {}  # for modes that need folders of their own
        self.other_users: Collection[Isolation] = ()  # modes in which jobs run as other users
        self.plain = PLAIN  # how programs are started in the weakest mode
        self.walls: dict[str, str] = {}  # what these cannot reach, for people
        self._leaving: set[asyncio.Task[None]] = set()
        self._offered: dict[Isolation, IsolationMode] = {WEAKEST: ProcessMode()}

    @property
    def metadata(self) -> dict[str, Any]:
        """What the server is told, for matching."""
        return {OFFERED: self.names, DEFAULT: self.default, **self.walls}

    @property
    def offered(self) -> Collection[Isolation]:
        """Returns all modes that work here, including those weaker than its own."""
        return self._offered.keys()

    @property
    def names(self) -> list[Isolation]:
        """Returns the modes that jobs can demand here; a stronger mode may serve."""
        return [mode for mode in MODES if self.choose(mode) in self._offered]

    @property
    def sandbox(self) -> SandboxMode | None:
        """Returns the default mode, if that is a sandbox."""
        mode = self._offered.get(self.default)
        return mode if isinstance(mode, SandboxMode) else None

    def __getitem__(self, mode: Isolation) -> IsolationMode:
        return self._offered[mode]

    def choose(self, *demanded: Isolation | None) -> Isolation:
        """Returns the strongest of these and its own, or the next stronger one that it has.

        Only a job that names an image can run in a container.
        """
        wanted = strongest(self.default, *demanded)
        able = (mode for mode in MODES[MODES.index(wanted) : -1] if mode in self._offered)
        return next(able, wanted)

    def lacks(self, mode: Isolation) -> str | None:
        """Returns why a job cannot run in this mode; None if it can."""
        if mode in self._offered:
            return None
        return f"this worker cannot isolate jobs in a {mode}: {self.lacking.get(mode, 'unknown')}"

    async def look(self, setting: str, candidates: Iterable[IsolationMode]) -> None:
        """Finds out what this machine supports; raises `InvalidInput` if the setting needs more."""
        lacking: dict[Isolation, str] = {}
        for mode in candidates:
            why = await mode.why_not()
            if why is None:
                self._offered[mode.name] = mode
            else:
                lacking[mode.name] = why
        self.lacking = lacking
        if setting == AUTO:
            self.default = next(mode for mode in AUTOMATIC if mode in self._offered)
            if self.default == WEAKEST:
                log.warning("jobs_not_isolated", reason=lacking.get(AUTOMATIC[0]))
            return
        named = next((mode for mode in MODES if mode == setting), None)
        if named is None:
            raise InvalidInput("isolation", f"auto or one of {', '.join(MODES)}", setting)
        if named not in self._offered:
            raise InvalidInput("isolation", "a mode that this machine supports", lacking[named])
        self.default = named

    async def add(self, mode: IsolationMode) -> None:
        """Adds one more mode if this machine supports it and it is not offered yet."""
        if mode.name in self._offered:
            return
        why = await mode.why_not()
        if why is None:
            self._offered[mode.name] = mode
        else:
            self.lacking = {**self.lacking, mode.name: why}

    def leave(self, confinement: Confinement, over: Callable[[], Awaitable[None]]) -> None:
        """Leaves a confinement once its processes have ended, which `over` waits for."""
        task = asyncio.get_running_loop().create_task(self._leave(confinement, over))
        self._leaving.add(task)
        task.add_done_callback(self._leaving.discard)

    async def _leave(self, confinement: Confinement, over: Callable[[], Awaitable[None]]) -> None:
        try:
            await over()
            await confinement.leave()
        except (WindlassError, OSError) as error:
            log.warning("confinement_left_something", error=str(error))

    async def close(self) -> None:
        """Waits until all confinements have been left."""
        if self._leaving:
            await asyncio.wait(self._leaving, timeout=LAST_WORDS_S)
