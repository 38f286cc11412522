"""Functions that the tests run as jobs, in real processes."""

import asyncio
import ctypes
import json
import math
import os
import signal
import subprocess
import sys
import threading
import urllib.request
from typing import Any

import windlass


@windlass.task
def add(left: int, right: int = 0) -> int:
    return left + right


@windlass.task
def nothing() -> None:
    return None


@windlass.task
async def nothing_async() -> None:
    return None


@windlass.task(name="greetings", queue="batch", retries=5, timeout="90s", requires="memory>=1GiB")
async def greet(name: str) -> dict[str, str]:
    await asyncio.sleep(0)
    return {"hello": name}


@windlass.task
def echo(value: Any) -> Any:
    return value


@windlass.task
def surroundings(*names: str) -> list[Any]:
    """The process, its processors, and what it sees of these variables."""
    return [os.getpid(), sorted(os.sched_getaffinity(0)), [os.environ.get(name) for name in names]]


@windlass.task
async def surroundings_async(*names: str) -> list[Any]:
    await asyncio.sleep(0)
    return [os.getpid(), sorted(os.sched_getaffinity(0)), [os.environ.get(name) for name in names]]


@windlass.task
def scheduling() -> int:
    """The rules under which this process is given a processor."""
    return os.sched_getscheduler(0)


@windlass.task
def fail() -> None:
    raise ValueError("this one never works")


@windlass.task
async def fail_async() -> None:
    await asyncio.sleep(0)
    raise ValueError("this one never works either")


@windlass.task
def raise_named(name: str) -> None:
    raise {
        "reset": ConnectionResetError("peer went away"),
        "timeout": TimeoutError("too slow"),
        "memory": MemoryError(),
        "full": OSError(28, "No space left on device"),
        "missing": FileNotFoundError(2, "No such file"),
        "exit": SystemExit(3),
    }[name]


@windlass.task
def open_closed_port(port: int) -> None:
    urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5)


@windlass.task
def fetch_type_error() -> int:
    return len(3)  # type: ignore[arg-type]


@windlass.task
def print_lines(lines: list[str]) -> None:
    for line in lines:
        print(line)


@windlass.task
def print_below_python() -> None:
    print("from Python")
    os.write(1, b"from a descriptor\n")
    subprocess.run(["echo", "from a program"], check=True)
    print("to the error stream", file=sys.stderr)


@windlass.task
def flood(count: int) -> None:
    block = b"x" * 65_535 + b"\n"
    for _ in range(count):
        os.write(1, block)


@windlass.task
async def flood_async(count: int) -> None:
    """Never yields to its loop: nothing but the writing itself can hold it back."""
    block = "x" * 65_535
    for _ in range(count):
        print(block)


@windlass.task
async def print_interleaved(name: str, count: int) -> None:
    for number in range(count):
        print(name, number)
        await asyncio.sleep(0)


@windlass.task
def block_in_c() -> None:
    """Sleeps where Python cannot see signals: only SIGKILL ends it."""
    print("blocking", flush=True)
    libc = ctypes.PyDLL(None)
    while True:
        libc.sleep(60)


@windlass.task
def sleep_and_clean_up() -> None:
    try:
        print("sleeping", flush=True)
        threading.Event().wait()
    finally:
        print("cleaned up", flush=True)


@windlass.task
def loop_until_canceled() -> None:
    job = windlass.current()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    job.log("looping")
    while not job.canceled:
        threading.Event().wait(0.01)
    job.log("saw the flag")
    job.check_canceled()


@windlass.task
async def sleep_async() -> None:
    try:
        print("sleeping")
        await asyncio.Event().wait()
    finally:
        print("cleaned up")


@windlass.task
async def block_the_loop() -> None:
    print("about to block")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    threading.Event().wait()


@windlass.task
def report_progress() -> dict[str, Any]:
    job = windlass.current()
    for step in range(5):
        job.progress(step / 4)
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(windlass.current().job))
    thread.start()
    thread.join()
    return {
        "job": job.job,
        "attempt": job.attempt,
        "workflow": job.workflow,
        "thread": seen[0],
        "environment": {
            name: value for name, value in os.environ.items() if name.startswith("WINDLASS_")
        },
    }


@windlass.task
async def report_progress_async() -> int:
    job = windlass.current()
    for step in range(5):
        job.progress({"step": step})
        await asyncio.sleep(0)
    return job.job


@windlass.task
def die(how: str) -> None:
    print("last words", flush=True)
    if how == "exit":
        os._exit(3)
    if how.isdigit():
        os._exit(int(how))
    if how.startswith("-"):
        number = int(how[1:])
        ctypes.CDLL(None).signal(number, 0)  # its default action, which Python has changed for some
        os.kill(os.getpid(), number)
    os.kill(os.getpid(), signal.Signals[how])


@windlass.task
async def die_async() -> None:
    os._exit(4)


@windlass.task
def allocate(size: int) -> int:
    return len(bytearray(size))


@windlass.task
def return_infinity() -> list[float]:
    return [1.0, math.inf]


@windlass.task
def return_object() -> object:
    return object()


@windlass.task
def tell_secret(name: str) -> dict[str, Any]:
    value = windlass.current().secret(name)
    assert os.environ[name] == value
    print("it is", value)
    windlass.current().progress({"of": value})
    return {"length": len(value), value: [value], "text": f"<{value}>"}


@windlass.task
async def tell_secret_async(name: str) -> dict[str, Any]:
    value = windlass.current().secret(name)
    assert name not in os.environ  # other jobs share this process
    print("it is", value)
    return {"length": len(value), value: [value], "text": f"<{value}>"}


@windlass.task
def fail_with_secret() -> None:
    raise ValueError(f"refused {os.environ['TOKEN']}")


@windlass.task
def variables() -> list[str]:
    return sorted(os.environ)


@windlass.task
def pid() -> int:
    return os.getpid()


@windlass.task
def wait_for_file(path: str) -> int:
    print("waiting")
    while not os.path.exists(path):
        threading.Event().wait(0.005)
    return os.getpid()


@windlass.task
def nap_between_steps(variable: str) -> list[object]:
    """Stores what a variable says, sleeps, and tells what it finds in the next attempt."""
    found = windlass.step("before", os.environ.get, variable)
    windlass.sleep(0.001)
    return [windlass.current().attempt, found]


@windlass.task
def fork_and_return() -> int:
    """A fork that comes back from its function must not take calls of its own."""
    os.fork()
    return 1


class Service:
    @staticmethod
    @windlass.task
    def measure(text: str) -> int:
        return len(text)


def unmarked() -> None:
    raise AssertionError("it was never to be called")


@windlass.task
def end_as(kind: str) -> None:
    """Ends in one of the ways that decide about retries."""
    if kind == "retry":
        raise windlass.Retry("busy", after="1m")
    if kind == "cause":
        raise windlass.Retry from ConnectionResetError("gone")
    if kind == "abort":
        raise windlass.Abort("no such customer")
    json.loads("{")


@windlass.task
async def end_as_async(kind: str) -> None:
    end_as(kind)
