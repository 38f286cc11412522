"""The functions that the demo runs as jobs."""

import time
from pathlib import Path

import windlass


@windlass.task
def primes_below(limit: int) -> int:
    """How many primes there are below `limit`."""
    sieve = bytearray([1]) * limit
    sieve[:2] = b"\0\0"
    for number in range(2, int(limit**0.5) + 1):
        if sieve[number]:
            sieve[number * number :: number] = bytes(len(range(number * number, limit, number)))
        windlass.current().progress(round(number / limit**0.5, 2))
    return sum(sieve)


@windlass.task
async def greet(name: str) -> str:
    """A coroutine is a task as well."""
    return f"hello, {name}"


@windlass.task
def train(steps: int) -> float:
    """A long job that says how far it is; a second for each step."""
    loss = 4.0
    for step in range(steps):
        windlass.current().progress(step, total=steps, text=f"loss {loss:.3f}")
        time.sleep(1)  # noqa: TID251 - stands for work
        loss *= 0.99
    return round(loss, 3)


@windlass.task
def paint_log(lines: int) -> int:
    """A log with colours, as compilers and test runners write it."""
    for line in range(lines):
        colour, word = ((32, "ok"), (33, "slow"), (31, "FAILED"))[min(line % 23 // 10, 2)]
        print(f"\x1b[2m{line:6}\x1b[0m case {line:04} \x1b[{colour}m{word}\x1b[0m")  # noqa: T201 - the log of a job
    return lines


@windlass.task
def resize(album: str) -> Path:
    """A result that is a file: it is kept as an artifact."""
    made = windlass.current().scratch / f"{album}.svg"
    made.write_text('<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"></svg>\n')
    return made


@windlass.task
def thumbnail_size(width: int, height: int = 480, scale: float = 0.25, /) -> list[int]:
    """How large a thumbnail becomes; its arguments have places and no names."""
    return [round(width * scale), round(height * scale)]


def build_release(version: str) -> str:
    """The part of a release that must not happen twice."""
    return f"windlass-{version}.tar.gz"


@windlass.task
def approve_release(version: str) -> str:
    """Builds, asks a person, and goes on when that one has answered."""
    built = windlass.step("build", build_release, version)
    approved = windlass.ask(f"Release {version} to everyone?", bool, timeout="7d")
    return f"{built} {'released' if approved else 'kept back'}"
