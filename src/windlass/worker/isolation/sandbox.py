"""The mode `sandbox`: bubblewrap gives a program namespaces of its own and a read-only system.

A program sees the system's folders, what the operator shares, and its scratch directory; it can
write only there and in a private /tmp. It has its own process ids, mounts, System V IPC and host
name, no way to gain rights, and fewer system calls (`system_calls.py`).

A worker that is not root runs it as its own user, in a user namespace. A worker that is root gives
each attempt a uid of its own, as the mode `user` does, and needs no user namespace.
"""

import asyncio
import os
import shutil
import signal
import stat
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

import msgspec
import structlog
from msgspec.structs import replace

from windlass.domain.matching.isolation import Isolation
from windlass.ports.executor import Limits
from windlass.ports.programs import start_program
from windlass.worker.isolation.confinement import Confinement, Wish
from windlass.worker.isolation.job_users import Uids
from windlass.worker.isolation.process import home_of
from windlass.worker.isolation.reporter import reporter_program
from windlass.worker.isolation.system_calls import filter_program
from windlass.worker.keeper.kept_process import Program, SpawnFailed
from windlass.worker.keeper.launch import Start, find_program

SYSTEM: Final = (
    "/bin", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/opt", "/sbin", "/sys",
    "/usr", "/run/systemd/resolve",
)  # fmt: skip
GPU_DEVICES: Final = ("/dev/dri", "/dev/kfd", "/dev/nvidia*")
FILTER_FD: Final = 10
STATUS_FD: Final = 11
REPORT_FD: Final = STATUS_FD + 1  # where the reporter writes
REPORTER_FD: Final = 13
PATIENCE_S: Final = 10
NOBODY: Final = 65534
# Paths inside a sandbox, where the job is alone with them.
TMP: Final = "/tmp"  # nosec B108
VAR_TMP: Final = "/var/tmp"  # nosec B108
# What root needs to enter another user's folder and to become that user.
TO_BECOME: Final = ("CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_DAC_READ_SEARCH")
REPORTER: Final = "/run/windlass-reporter"
ENOENT: Final = 2
CANNOT_START: Final = (None, 126, 127)  # exit code of a program that is missing, or lacks a library
NO_LIMITS: Final = Limits()

log = structlog.get_logger()


class Visible(msgspec.Struct, frozen=True):
    """Which folders of the machine a sandbox has: `shared` for reading, `hidden` not at all."""

    shared: tuple[Path, ...] = ()
    hidden: tuple[Path, ...] = ()

    def shows(self, path: str, *more: Path) -> bool:
        """Returns whether a file of the machine is in a sandbox at the same path.

        `more` are folders that it also has, even inside hidden ones.
        """
        real = Path(os.path.realpath(path))
        if any(real.is_relative_to(hidden) for hidden in self.hidden):
            return any(real.is_relative_to(folder) for folder in more)
        seen = (*map(Path, SYSTEM), *self.shared, *more)
        return any(real.is_relative_to(os.path.realpath(folder)) for folder in seen)


class SandboxMode:
    """Implements `IsolationMode`; `filter_file` stores the filter of system calls."""

    name: Isolation = "sandbox"

    def __init__(self, visible: Visible, filter_file: Path, uids: Uids | None) -> None:
        self._visible = visible
        self._filter_file = filter_file
        self._reporter_file = filter_file.with_name("reporter")
        self._reports = True
        self._uids = uids if os.geteuid() == 0 else None
        self._bwrap = shutil.which("bwrap") or ""
        self._setpriv = shutil.which("setpriv") or ""
        self._prlimit = shutil.which("prlimit") or ""

    async def why_not(self) -> str | None:
        """Tries it: too many settings decide whether namespaces are allowed to check each."""
        if not self._bwrap:
            return "bubblewrap is not installed (no bwrap on the PATH)"
        machine = os.uname().machine
        program, reporter = filter_program(machine), reporter_program(machine)
        if program is None or reporter is None:
            return f"there is no list of system calls for {machine}"
        if os.geteuid() == 0 and not self._setpriv:
            return "setpriv (util-linux) is not on the PATH"
        if self._uids is not None and (why := self._uids.check()) is not None:
            return why
        try:
            self._filter_file.write_bytes(program)
            self._reporter_file.write_bytes(reporter)
        except OSError as error:
            return f"cannot write {error.filename}: {error.strerror or error}"
        why = await self._try()
        if why is not None:
            self._reports = False  # A kernel may refuse it what it allows others.
            why = await self._try()
            if why is None:
                log.warning("reporter_does_not_work", problem="codes above 128 count as signals")
        return why

    async def _try(self) -> str | None:
        """Returns what bubblewrap prints if it cannot start a program."""
        code, said = await self._run("true")
        return None if code == 0 else f"bubblewrap does not work here: {said.strip()}"

    async def ask(self, program: str, *arguments: str) -> str | None:
        """Returns what a program prints in a sandbox if it succeeds; None if it cannot start."""
        code, said = await self._run(program, *arguments)
        return None if code in CANNOT_START else said if code == 0 else ""

    async def _run(self, *program: str) -> tuple[int | None, str]:
        """Returns how a program without a job ends in a sandbox, and what it and bwrap print."""
        wish = Wish(job=0, attempt=0, scratch=Path(TMP))
        words = [*self.words(wish, TMP), "--", *self.report(), *self.become(NOBODY), *program]
        null = os.open(os.devnull, os.O_WRONLY)
        opened = {number: os.open(file, os.O_RDONLY) for number, file in self.files}
        fds = {str(number): str(fd) for number, fd in opened.items()}
        place = words.index("--")
        fds |= {str(STATUS_FD): str(null), str(REPORT_FD): str(null)}
        words = [fds.get(w, w) if n < place + 3 else w for n, w in enumerate(words)]
        try:
            process = await start_program(
                *words, pass_fds=[*opened.values(), null], stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            return None, str(error)
        finally:
            for fd in (*opened.values(), null):
                os.close(fd)
        try:
            said, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
        except TimeoutError:
            return None, f"it did not end within {PATIENCE_S} s"
        finally:
            if process.returncode is None:
                os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return process.returncode, said.decode(errors="replace")

    def enter(self, wish: Wish) -> Confinement:
        """Prepares the sandbox of one attempt."""
        return Sandbox(self, wish, self._uids)

    @property
    def gains_nothing(self) -> bool:
        """Returns whether bubblewrap is not a setuid program, which could not be kept apart."""
        return not os.stat(self._bwrap).st_mode & stat.S_ISUID

    @property
    def files(self) -> tuple[tuple[int, str], ...]:
        """Returns the files that bubblewrap finds open, by descriptor."""
        filters = (FILTER_FD, str(self._filter_file))
        return (filters, (REPORTER_FD, str(self._reporter_file))) if self._reports else (filters,)

    def words(self, wish: Wish, folder: str, disk: int = 0) -> list[str]:
        """Returns the command line of bubblewrap up to the program, which starts in `folder`.

        `disk` limits /tmp as well.
        """
        words = [
            self._bwrap, "--unshare-pid", "--unshare-ipc", "--unshare-uts",
            "--unshare-cgroup-try", "--die-with-parent", "--new-session",
        ]  # fmt: skip
        if os.geteuid() == 0:
            # Namespaces made by root need no user namespace; `become` drops the remaining rights.
            words += ["--cap-drop", "ALL"]
            for capability in TO_BECOME:
                words += ["--cap-add", capability]
        else:
            words.append("--unshare-user")
        if wish.network == "none":
            words.append("--unshare-net")
        words += [*_system(), "--proc", "/proc", "--dev", "/dev"]
        words += ["--size", str(disk)] if disk else []
        words += ["--perms", "1777", "--tmpfs", TMP]
        words += ["--dir", "/var", "--symlink", TMP, VAR_TMP]
        if wish.devices:
            for path in _gpu_devices():
                words += ["--dev-bind-try", path, path]
        for shared in self._visible.shared:
            words += [*_parents(shared), "--ro-bind-try", str(shared), str(shared)]
        for hidden in (*self._closed_above(wish.scratch), *self._hidden()):
            words += ["--tmpfs", str(hidden)]
        if wish.job:
            words += [*_parents(wish.scratch), "--bind", str(wish.scratch), str(wish.scratch)]
        if wish.socket is not None:
            place = str(wish.socket)
            words += [*_parents(wish.socket), "--ro-bind-try", place, place]
        if self._reports:
            words += ["--perms", "0555", "--ro-bind-data", str(REPORTER_FD), REPORTER]
        words += ["--remount-ro", "/", "--chdir", folder, "--seccomp", str(FILTER_FD)]
        return [*words, "--json-status-fd", str(STATUS_FD)]

    def report(self) -> list[str]:
        """Returns the arguments that pass the program's wait status out of the sandbox."""
        return [REPORTER, str(REPORT_FD)] if self._reports else []

    def become(self, uid: int | None) -> list[str]:
        """Returns the arguments by which root becomes the attempt's user, inside."""
        if uid is None or os.geteuid() != 0:
            return []
        return [
            self._setpriv, "--reuid", str(uid), "--regid", str(uid), "--clear-groups",
            "--inh-caps=-all", "--bounding-set=-all", "--",
        ]  # fmt: skip

    def limit(self, processes: int) -> list[str]:
        """Returns the arguments that limit the processes of the sandbox: its user has no others."""
        # The reporter runs as the job's user if the worker is not root.
        count = processes + (self._reports and os.geteuid() != 0)
        most = f"--nproc={count}:{count}"
        return [self._prlimit, most, "--"] if processes and self._prlimit else []

    def shows(self, path: str, *more: Path) -> bool:
        """Returns whether a file of the machine is in the sandbox at the same path.

        `more` are folders that it also has.
        """
        return self._visible.shows(path, *more)

    def _hidden(self) -> list[Path]:
        """Returns the hidden folders that would otherwise be visible."""
        return [path for path in self._visible.hidden if path.is_dir() and self._is_seen(path)]

    def _closed_above(self, scratch: Path) -> list[Path]:
        """Returns the outermost visible folder above `scratch` that its user may not enter.

        An empty one replaces it. Otherwise no path would lead to the scratch directory.
        """
        if os.geteuid() != 0:
            return []
        above = [path for path in reversed(scratch.parents) if self._is_seen(path)]
        return [path for path in above if not path.stat().st_mode & stat.S_IXOTH][:1]

    def _is_seen(self, path: Path) -> bool:
        return any(
            path.is_relative_to(folder) for folder in (*map(Path, SYSTEM), *self._visible.shared)
        )


class Sandbox:
    """Implements `Confinement`."""

    def __init__(self, mode: SandboxMode, wish: Wish, uids: Uids | None) -> None:
        self._mode = mode
        self._wish = wish
        self._uids = uids
        self._uid = None if uids is None else uids.take()

    async def wrap(self, program: Program) -> Program:
        """Returns bubblewrap with the program inside."""
        mode, scratch = self._mode, self._wish.scratch
        self._check_program(program)
        uid = os.geteuid() if self._uid is None else self._uid
        home = {**home_of(uid, str(scratch)), "TMPDIR": TMP}
        limits = program.limits or NO_LIMITS
        words = (*mode.words(self._wish, program.cwd, limits.disk_bytes), "--")
        words += (*mode.report(), *mode.become(self._uid), *mode.limit(limits.processes))
        start = Start(
            user=self._uid, opens=mode.files, nested=True, status=STATUS_FD,
            apart=mode.gains_nothing,
        )  # fmt: skip
        return replace(
            program,
            argv=(*words, *program.argv),
            env={**home, **program.env},
            start=start,
        )

    def _check_program(self, program: Program) -> None:
        """Raises `SpawnFailed` for a program that is missing, or not in the sandbox."""
        env = {"PATH": os.environ.get("PATH", os.defpath), **program.env}
        try:
            path = os.path.join(program.cwd, find_program(program.argv[0], env))
        except FileNotFoundError as error:
            raise SpawnFailed(ENOENT, str(error.strerror)) from error
        if not self._mode.shows(path, self._wish.scratch):
            raise SpawnFailed(
                ENOENT,
                f"cannot start {path}: it is not in the sandbox of jobs; share its folder with "
                "--share, or start the worker with --isolation process",
            )

    async def leave(self) -> None:
        """Gives the uid back; nothing else outlives the processes."""
        if self._uids is not None and self._uid is not None:
            self._uids.give_back(self._uid)


def _system() -> list[str]:
    """Returns the arguments that show the system's folders; links stay links."""
    words: list[str] = []
    for path in SYSTEM:
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    return words


def _parents(path: Path) -> list[str]:
    """Returns the arguments that make the folders above a path, open to the user of a job."""
    words: list[str] = []
    for parent in reversed(path.parents[:-1]):
        words += ["--dir", str(parent)]
    return words


def _gpu_devices() -> Sequence[str]:
    return sorted(str(path) for name in GPU_DEVICES for path in Path("/").glob(name[1:]))


SOURCES: Final = Path(__file__).parents[3]


def visible_folders(shared: Iterable[Path], hidden: Iterable[Path]) -> Visible:
    """Returns the visible folders: this Python, its import path, and what the operator shares.

    Functions are also imported from the directory that the worker was started in, so it is visible,
    unless it contains somebody's home.
    """
    here = Path.cwd()
    found = list(own_python())
    found += [Path(entry) for entry in sys.path if entry and Path(entry) != here]
    found += [] if _holds_home(here) else [here]
    found += shared
    return Visible(_outermost(found), tuple(path.absolute() for path in hidden))


def own_python() -> tuple[Path, ...]:
    """Returns the folders of the Python that runs the worker, and of Windlass."""
    return Path(sys.prefix), Path(sys.base_prefix), SOURCES


def _outermost(folders: Iterable[Path]) -> tuple[Path, ...]:
    """Returns the folders that no other contains: each one slows the start of a job."""
    there = {folder.absolute() for folder in folders if os.path.exists(folder)} - {Path("/")}
    kept: list[Path] = []
    for folder in sorted(there, key=lambda path: (len(path.parts), path)):
        if not any(folder.is_relative_to(other) for other in (*map(Path, SYSTEM), *kept)):
            kept.append(folder)
    return tuple(kept)


def _holds_home(folder: Path) -> bool:
    """Returns whether this folder is or contains a home."""
    home = Path(os.path.realpath(os.environ.get("HOME", "/")))
    return home.is_relative_to(folder) or Path("/home").is_relative_to(folder)
