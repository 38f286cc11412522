"""Programs of the solver, run within bounds: time, memory, output, and all they started.

A build script that hangs, a target that eats memory, a test that writes for ever: each ends
with a reason, and nothing of it is left behind. Every program leads a process group of its
own; what leaves the group is found as a descendant of it. Should we be killed ourselves, a
guard ends them.
"""

import asyncio
import os
import resource
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from windlass.domain.values.errors import InvalidInput
from windlass.fuzzing.guard import guarded
from windlass.ports.clock import Clock

LOOK_MS: Final = 100
MIB: Final = 1024 * 1024
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")

Reason = Literal["exited", "timeout", "memory", "output"]


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a program may take.

    `memory` bounds what it and its descendants hold together, by looking at them;
    `address_space` what each of them may map, by the kernel (not for sanitizers, which map
    far more than they use). 0 means no bound. With `rolling` a program that writes more than
    `output` goes on, and what it said before is forgotten.
    """

    timeout_ms: int
    memory: int = 0
    address_space: int = 0
    output: int = 64 * MIB
    rolling: bool = False
    grace_ms: int = 2_000


@dataclass(frozen=True, slots=True)
class Ended:
    """How a program ended; `code` is minus the signal's number where one ended it."""

    code: int
    reason: Reason
    took_ms: int

    @property
    def fine(self) -> bool:
        return self.reason == "exited" and self.code == 0

    def describe(self, bounds: Bounds) -> str:
        """In a few words, for logs and errors."""
        if self.reason == "timeout":
            return f"ran longer than {bounds.timeout_ms / 1000:g} s and was ended"
        if self.reason == "memory":
            return f"used more than {bounds.memory // MIB} MiB of memory and was ended"
        if self.reason == "output":
            return f"wrote more than {bounds.output // MIB} MiB of output and was ended"
        if self.code < 0:
            return f"was ended by {signal_name(-self.code)}"
        return f"ended with code {self.code}"


def signal_name(number: int) -> str:
    """SIGSEGV rather than 11."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    log: Path,
    bounds: Bounds,
    clock: Clock,
    env: Mapping[str, str] | None = None,
    errors: Path | None = None,
    looked: Callable[[], None] = lambda: None,
) -> Ended:
    """Run a program to its end, or to the bound it meets.

    Its output goes to `log`; what it says of errors as well, unless they have a file. `looked`
    is called now and then while it runs.
    """
    began = clock.now_ms()
    process = await _start(argv, cwd, (log, errors or log), env)
    _limit(process.pid, bounds.address_space)
    waiter = asyncio.ensure_future(process.wait())
    reason: Reason = "exited"
    try:
        left = bounds.timeout_ms
        while not waiter.done():
            if left < bounds.timeout_ms and (crossed := _crossed(process.pid, left, log, bounds)):
                reason = crossed
                break
            looked()
            await _pass(waiter, min(left, LOOK_MS), clock)
            left = began + bounds.timeout_ms - clock.now_ms()
    finally:
        await _end_all(process.pid, waiter, bounds.grace_ms, clock)
    return Ended(waiter.result(), reason, clock.now_ms() - began)


def tail(log: Path, limit: int = 64 * 1024) -> str:
    """The end of what a program said, as text."""
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - limit, 0))
        return file.read().decode(errors="replace")


async def _start(
    argv: Sequence[str], cwd: Path, logs: tuple[Path, Path], env: Mapping[str, str] | None
) -> asyncio.subprocess.Process:
    with logs[0].open("ab") as output, logs[1].open("ab") as errors:
        try:
            return await asyncio.create_subprocess_exec(
                *argv, cwd=cwd, env=guarded(env), stdin=asyncio.subprocess.DEVNULL, stdout=output,
                stderr=errors, process_group=0,
            )  # fmt: skip
        except OSError as error:
            expected = f"a program that can be started ({error.strerror})"
            raise InvalidInput("command", expected, argv[0]) from None


def _limit(pid: int, address_space: int) -> None:
    """From outside, right after the start: between fork and exec other threads' locks lurk."""
    try:
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        if address_space:
            resource.prlimit(pid, resource.RLIMIT_AS, (address_space, address_space))
    except (ProcessLookupError, PermissionError):
        pass  # it has ended already


def _crossed(pid: int, left_ms: int, log: Path, bounds: Bounds) -> Reason | None:
    if left_ms <= 0:
        return "timeout"
    if bounds.output and log.stat().st_size > bounds.output:
        if not bounds.rolling:
            return "output"
        os.truncate(log, 0)  # it is written to at its end, wherever that is
    if bounds.memory and sum(_resident(member) for member in family(pid)) > bounds.memory:
        return "memory"
    return None


async def _pass(waiter: asyncio.Future[int], duration_ms: int, clock: Clock) -> None:
    """Let time pass, but not beyond the end of the program."""
    timer = asyncio.ensure_future(clock.sleep_ms(duration_ms))
    both: set[asyncio.Future[Any]] = {waiter, timer}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()


async def _end_all(pid: int, waiter: asyncio.Future[int], grace_ms: int, clock: Clock) -> None:
    """Ask the whole family to end, and make it end; also what a program left running."""
    if waiter.done():
        _signal_group(pid, signal.SIGKILL)
        return
    members = {pid, *family(pid)}
    _signal(members, signal.SIGTERM)
    await _pass(waiter, grace_ms, clock)
    _signal(members.union(family(pid)) - ({pid} if waiter.done() else set()), signal.SIGKILL)
    _signal_group(pid, signal.SIGKILL)
    await waiter


def _signal(members: set[int], number: int) -> None:
    for member in sorted(members):
        try:
            os.kill(member, number)
        except (ProcessLookupError, PermissionError):
            continue


def _signal_group(pid: int, number: int) -> None:
    try:
        os.killpg(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def family(pid: int) -> list[int]:
    """The live members of a process's group, and all that descend from it."""
    parents: dict[int, list[int]] = {}
    found = []
    for member, parent, group in _all_processes():
        parents.setdefault(parent, []).append(member)
        if group == pid:
            found.append(member)
    known = {pid, *found}
    for ancestor in (line := [pid, *found]):
        fresh = [child for child in parents.get(ancestor, []) if child not in known]
        known.update(fresh)
        line.extend(fresh)
        found.extend(fresh)
    return found


def _all_processes() -> Iterator[tuple[int, int, int]]:
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            fields = Path("/proc", name, "stat").read_bytes().rpartition(b")")[2].split()
        except OSError:
            continue
        if fields[0] not in (b"Z", b"X"):
            yield int(name), int(fields[1]), int(fields[2])


def _resident(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
