"""The functions that Windlass runs in this benchmark; the peers run the same ones.

`start` says when it began, in nanoseconds of the clock that all processes of a machine
share, by a datagram to whoever submitted it. Neither system has to keep a result for that.
"""

import socket
import time

import windlass


def say_start(address: str, number: int) -> None:
    """Tell `address` that call `number` begins now."""
    now = time.monotonic_ns()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as out:
        out.sendto(b"%d %d" % (number, now), address)


@windlass.task
def start(address: str, number: int) -> None:
    """Say when it began."""
    say_start(address, number)


@windlass.task
async def start_async(address: str, number: int) -> None:
    """Say when it began, from an event loop."""
    say_start(address, number)


@windlass.task
def noop(n: int) -> None:
    """Nothing: only the way there and back is measured."""


@windlass.task
async def noop_async(n: int) -> None:
    """Nothing, in an event loop."""
