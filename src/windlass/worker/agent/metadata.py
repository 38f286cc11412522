"""What an agent reports about its machine: architecture, sizes, tools, versions, limits.

Quick facts are available at once; tools are queried in separate processes while the agent already
works. GPUs (`gpus.py`) are known before it enrols: no job gets one without its index.
`limits:memory` and so on say how the worker enforces job limits.
"""

import asyncio
import os
import platform
import re
import shutil
import signal
import subprocess
from collections.abc import Collection
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from windlass.domain.matching.isolation import WEAKEST, Isolation
from windlass.executors.media import find_ffmpeg
from windlass.ports.programs import start_program
from windlass.worker.isolation.job_users import startable_by_all
from windlass.worker.isolation.modes import Modes
from windlass.worker.isolation.sandbox import NOBODY

MAX_S = 10


async def output_of(program: str, *arguments: str, user: int | None = None) -> str | None:
    """Returns what a program prints; None if it is missing, fails or takes too long.

    A `user` other than ours has no groups. Only root can start programs as others.
    """
    path = shutil.which(program)
    if path is None:
        return None
    # uvloop takes no `user`.
    become = None if user is None else partial(_become, user)
    try:
        process = await start_program(
            path, *arguments, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
            start_new_session=True, preexec_fn=become,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):  # the latter if it cannot become the user
        return None
    try:
        output, _ = await asyncio.wait_for(process.communicate(), MAX_S)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    return output.decode(errors="replace") if process.returncode == 0 else None


def _become(user: int) -> None:
    os.setgroups([])
    os.setgid(user)
    os.setuid(user)


CGROUP = "cgroup"
RLIMIT = "rlimit"
WATCHED = "watched"


def mechanisms(
    controllers: Collection[str], has_cgroup: bool, default: Isolation
) -> dict[str, str]:
    """Returns the mechanism for each limit, from what the keeper's cgroup offers."""
    own_user = RLIMIT if default != WEAKEST else WATCHED
    found = {
        "memory": CGROUP if "memory" in controllers else f"{RLIMIT}, {WATCHED}",
        "cpu_time": f"{RLIMIT}, {CGROUP}" if has_cgroup else f"{RLIMIT}, {WATCHED}",
        "processes": CGROUP if "pids" in controllers else own_user,
        "open_files": RLIMIT,
        "disk": f"{RLIMIT}, {WATCHED}",
    }
    return {f"limits:{name}": mechanism for name, mechanism in found.items()}


VERSION: Final = re.compile(r"(?<![\w.-])[vn]?(\d+(?:\.\d+)+[\w.+~-]*)")
# A line of `ffmpeg -encoders`, not of its legend (=): the encoder, and its codec if different.
ENCODER: Final = re.compile(
    r"^ [VAS][A-Z.]{5} ([^=\s]\S*)[^\n]*?(?:\(codec (\S+)\))? *$", re.MULTILINE
)

# The kernel's names of architectures, and Debian's.
ARCHITECTURES: Final = {
    "x86_64": "amd64", "aarch64": "arm64", "armv7l": "armhf", "armv6l": "armel", "i686": "i386",
    "i386": "i386", "ppc64le": "ppc64el", "s390x": "s390x", "riscv64": "riscv64",
    "loongarch64": "loong64", "mips64": "mips64el",
}  # fmt: skip


class Tool(NamedTuple):
    """A program that jobs may require; the first one found counts."""

    name: str
    programs: tuple[str, ...]
    argument: str = "--version"


TOOLS: Final = (
    Tool("afl", ("afl-fuzz",), "--version"),
    Tool("clang", ("clang",)),
    Tool("cmake", ("cmake",)),
    Tool("docker", ("docker",)),
    Tool("ffmpeg", ("ffmpeg",), "-version"),
    Tool("gcc", ("gcc",)),
    Tool("git", ("git",)),
    Tool("gstreamer", ("gst-launch-1.0",)),
    Tool("make", ("make",)),
    Tool("ninja", ("ninja",)),
    Tool("podman", ("podman",)),
    Tool("python", ("python3",)),
    Tool("rustc", ("rustc",)),
)


class Jobs(Protocol):
    """How jobs of this worker start programs."""

    def shows(self, program: str) -> bool:
        """Returns whether jobs can see a program of this machine."""

    async def ask(self, program: str, *arguments: str) -> str | None:
        """Returns what a program prints if it succeeds; None if they cannot start it."""


class Plain:
    """Implements `Jobs` for jobs that start programs as the worker does."""

    def shows(self, program: str) -> bool:
        return bool(program)

    async def ask(self, program: str, *arguments: str) -> str | None:
        return await output_of(program, *arguments) or ""


class OtherUsers:
    """Implements `Jobs` for jobs that start programs as users without an account."""

    def shows(self, program: str) -> bool:
        return startable_by_all(program)

    async def ask(self, program: str, *arguments: str) -> str | None:
        """Queries as such a user if the worker may, else as the worker."""
        return await output_of(program, *arguments, user=NOBODY if os.geteuid() == 0 else None)


class Elsewhere:
    """Implements `Jobs` for jobs that run in images of their own, with the programs in those."""

    def shows(self, program: str) -> bool:  # noqa: ARG002
        return False

    async def ask(self, program: str, *arguments: str) -> str | None:  # noqa: ARG002
        return None


PLAIN: Final = Plain()


def jobs_in(modes: Modes) -> Jobs:
    """Returns how jobs that ask for no mode start programs on this worker."""
    if modes.default == "user":
        return OtherUsers()
    if modes.default == "container":
        return Elsewhere()
    return modes.sandbox or PLAIN


def quick_facts(jobs: Jobs = PLAIN) -> dict[str, Any]:
    """Returns what is known without running any program."""
    return {
        "system:architectures": [architecture_of(platform.machine())],
        "system:cpus": len(os.sched_getaffinity(0)),
        "system:memory": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "system:os": platform.system().lower(),
        "system:hostname": platform.node(),
        **{f"{tool.name}:available": _find(tool, jobs) is not None for tool in TOOLS},
    }


def architecture_of(machine: str) -> str:
    """Returns Debian's name of an architecture."""
    return ARCHITECTURES.get(machine, machine)


async def gather(jobs: Jobs = PLAIN) -> dict[str, Any]:
    """Returns the quick facts, versions of tools and encoders of ffmpeg, as jobs start them.

    Plain ones are queried once per process: a program may start its worker again and again.
    """
    if jobs is not PLAIN:
        return {**quick_facts(jobs), **await _ask_tools(jobs)}
    place = os.environ.get("PATH", "")
    if place not in _asked:
        _asked[place] = await _ask_tools(jobs)
    return {**quick_facts(), **_asked[place]}


_asked: Final[dict[str, dict[str, Any]]] = {}  # cached by PATH


async def _ask_tools(jobs: Jobs) -> dict[str, Any]:
    facts: dict[str, Any] = {}
    # One at a time: a starting fleet must not overload its machines.
    dpkg = await output_of("dpkg", "--print-architecture")
    ffmpeg = find_ffmpeg()
    encoders = None
    if ffmpeg and jobs.shows(ffmpeg):
        encoders = await jobs.ask(ffmpeg, "-hide_banner", "-encoders")
    if dpkg:
        facts["system:architectures"] = [dpkg.strip()]
    if encoders:
        facts["ffmpeg:encoders"] = encoder_names(encoders)
    for tool in TOOLS:
        path = _find(tool, jobs)
        said = None if path is None else await jobs.ask(path, tool.argument)
        if path is not None and said is None:
            facts[f"{tool.name}:available"] = False
        if said and (found := VERSION.search(said)):
            facts[f"{tool.name}:version"] = found[1]
    return facts


def encoder_names(listed: str) -> list[str]:
    """Returns what `-c` accepts, from `ffmpeg -encoders`: names of encoders and of their codecs."""
    return sorted({name for names in ENCODER.findall(listed) for name in names if name})


def _find(tool: Tool, jobs: Jobs) -> str | None:
    if tool.name == "ffmpeg":  # it may also come with a package
        found = find_ffmpeg()
    else:
        found = next((path for program in tool.programs if (path := shutil.which(program))), None)
    return None if found is None or not jobs.shows(found) else found
