"""Runs the solver's programs with limits on time, memory and output, and cleans up after them.

A build script that hangs, a target that uses too much memory, a test that writes for ever: the
runner stops each of them, reports the reason and leaves no process behind. Every program leads
its own process group; processes that leave the group are found as descendants. If we are
killed ourselves, the process guard kills them.
"""

import asyncio
import os
import resource
import signal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

from windlass.ports.clock import Clock
from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.processes.process_guard import guarded_environment

POLL_MS: Final = 100
MIB: Final = 1024 * 1024
BLOCK: Final = 512  # bytes, in which a shell counts files
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")

# Words before a command that give its program a small parent. To the kernel, the peak memory of a
# process is at least that of the one that started it, even after exec. A program that limits its
# own peak, as libFuzzer does, would take ours for its own. `timeout 0` waits without a limit and
# ends as the program did; a shell would exit with 128 + N for a signal N.
SMALL_PARENT: Final = ("sh", "-c", 'ulimit -c 0; exec timeout 0 "$@"', "sh")

Reason = Literal["exited", "timeout", "memory", "output"]


@dataclass(frozen=True, slots=True)
class Limits:
    """How much a program may use. 0 means no limit.

    `memory` limits the resident memory of the program and its descendants together, by
    polling. `address_space` limits what each of them may map, through the kernel; do not set
    it for sanitizers, which map far more than they use. `file_size` limits each file that it
    writes, through the kernel, to at most twice that. With `rolling`, a program that writes
    more than `output` keeps running and the runner discards its earlier output.
    """

    timeout_ms: int
    memory: int = 0
    address_space: int = 0
    file_size: int = 0
    output: int = 64 * MIB
    rolling: bool = False
    grace_ms: int = 2_000


@dataclass(frozen=True, slots=True)
class ExitStatus:
    """How a program ended. If a signal ended it, `code` is minus the signal's number."""

    code: int
    reason: Reason
    took_ms: int

    @property
    def ok(self) -> bool:
        return self.reason == "exited" and self.code == 0

    def describe(self, limits: Limits) -> str:
        """Describes the end in a few words, for logs and errors."""
        if self.reason == "timeout":
            return f"ran longer than {limits.timeout_ms / 1000:g} s and was stopped"
        if self.reason == "memory":
            return f"used more than {limits.memory // MIB} MiB of memory and was stopped"
        if self.reason == "output":
            return f"wrote more than {limits.output // MIB} MiB of output and was stopped"
        if self.code < 0:
            return f"was killed by {signal_name(-self.code)}"
        return f"exited with code {self.code}"


def signal_name(number: int) -> str:
    """Returns a name such as SIGSEGV for a signal's number."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


async def run(
    argv: Sequence[str],
    *,
    cwd: Path,
    log: Path,
    limits: Limits,
    clock: Clock,
    env: Mapping[str, str] | None = None,
    errors: Path | None = None,
    on_poll: Callable[[], None] = lambda: None,
) -> ExitStatus:
    """Runs a program until it ends or exceeds a limit.

    Its output goes to `log`, and its error output too unless `errors` names another file.
    `on_poll` is called regularly while it runs.
    """
    began = clock.now_ms()
    logs = (log, errors or log)
    process = await _start(_with_file_size(argv, limits.file_size), cwd, logs, env)
    _set_rlimits(process.pid, limits.address_space)
    waiter = asyncio.ensure_future(process.wait())
    reason: Reason = "exited"
    try:
        left = limits.timeout_ms
        while not waiter.done():
            if left < limits.timeout_ms and (
                exceeded := _limit_exceeded(process.pid, left, logs, limits)
            ):
                reason = exceeded
                break
            on_poll()
            await _wait(waiter, min(left, POLL_MS), clock)
            left = began + limits.timeout_ms - clock.now_ms()
    finally:
        await _kill_tree(process.pid, waiter, limits.grace_ms, clock)
    return ExitStatus(waiter.result(), reason, clock.now_ms() - began)


def tail(log: Path, limit: int = 64 * 1024) -> str:
    """Returns the end of a program's output as text."""
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - limit, 0))
        return file.read().decode(errors="replace")


def head_and_tail(log: Path, limit: int = 64 * 1024) -> str:
    """Returns a program's output as text; for a long one, its beginning and its end.

    A report starts with what went wrong and ends with a summary.
    """
    with log.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        if size <= limit:
            return file.read().decode(errors="replace")
        head = file.read(limit // 2).decode(errors="replace")
        file.seek(size - limit // 2)
        end = file.read().decode(errors="replace")
    return f"{head}\n[{size - limit} bytes omitted]\n{end}"


async def _start(
    argv: Sequence[str], cwd: Path, logs: tuple[Path, Path], env: Mapping[str, str] | None
) -> asyncio.subprocess.Process:
    with logs[0].open("ab") as output, logs[1].open("ab") as errors:
        try:
            return await asyncio.create_subprocess_exec(
                *argv, cwd=cwd, env=guarded_environment(env), stdin=asyncio.subprocess.DEVNULL,
                stdout=output, stderr=errors, process_group=0,
            )  # fmt: skip
        except OSError as error:
            text = f"cannot start {argv[0]}: {error.strerror}"
            raise InvalidSetting("command", text, argv[0]) from None


def _with_file_size(argv: Sequence[str], most: int) -> Sequence[str]:
    """Returns a command that limits its own file sizes: a quick program would write before we
    could.
    """
    if not most:
        return argv
    return ["sh", "-c", f'ulimit -f {-(-most // BLOCK)}; exec "$@"', "sh", *argv]


def _set_rlimits(pid: int, address_space: int) -> None:
    """Sets kernel limits from outside: code between fork and exec could deadlock on a lock."""
    try:
        resource.prlimit(pid, resource.RLIMIT_CORE, (0, 0))
        if address_space:
            resource.prlimit(pid, resource.RLIMIT_AS, (address_space, address_space))
    except (ProcessLookupError, PermissionError):
        pass  # the program has already ended


def _limit_exceeded(
    pid: int, left_ms: int, logs: tuple[Path, Path], limits: Limits
) -> Reason | None:
    if left_ms <= 0:
        return "timeout"
    for log in logs:
        if not limits.output or log.stat().st_size <= limits.output:
            continue
        if not limits.rolling:
            return "output"
        os.truncate(log, 0)  # the program appends, so it continues at the new end
    if (
        limits.memory
        and sum(_resident_bytes(member) for member in process_tree(pid)) > limits.memory
    ):
        return "memory"
    return None


async def _wait(waiter: asyncio.Future[int], duration_ms: int, clock: Clock) -> None:
    """Sleeps, but no longer than until the program ends."""
    timer = asyncio.ensure_future(clock.sleep_ms(duration_ms))
    both: set[asyncio.Future[Any]] = {waiter, timer}
    try:
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
    finally:
        timer.cancel()


async def _kill_tree(pid: int, waiter: asyncio.Future[int], grace_ms: int, clock: Clock) -> None:
    """Terminates all processes of the program, then kills them, including any it left running."""
    if waiter.done():
        _signal_group(pid, signal.SIGKILL)
        return
    members = {pid, *process_tree(pid)}
    _signal(members, signal.SIGTERM)
    await _wait(waiter, grace_ms, clock)
    _signal(members.union(process_tree(pid)) - ({pid} if waiter.done() else set()), signal.SIGKILL)
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


def process_tree(pid: int) -> list[int]:
    """Returns the live members of a process's group and all its descendants."""
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


def _resident_bytes(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0
