"""The messages between the executor of Python functions and its processes.

A frame is a length and a msgpack list of messages: all messages of one turn of a loop are sent at
once. Calls of plain functions are sent one by one instead, as packets in a queue that all idle
processes read from.
"""

import os
import socket
from typing import Any, Final

import msgspec

from windlass.domain.lifecycle.failures import Raised

PACKET_LIMIT: Final = 32_768  # larger calls are sent in a file
HERE: Final = b"+"  # the first message of a process: it has started
ALONE: Final = "alone"  # the argument of a process that runs one call only
KEPT_CODE: Final = "kept"  # the argument of a process that asks for the code that the agent keeps
CURRENT: Final = 0  # offset in a process's page: the call it runs, 0 when idle
STOPPED: Final = 1  # offset in a process's page: the call it must give up
HELD: Final = 2  # offset in a process's page: whether the agent has stopped reading its output
PAGE_BYTES: Final = 24
LOOK_OUT_S: Final = 0.003  # how long a process stays awake for a call that may follow
NAP_S: Final = 0.00005  # between two checks; a spinning process delays what it waits for


class Call(msgspec.Struct, array_like=True, frozen=True, tag=1):
    """Run this function. `seq` numbers the calls of one executor."""

    seq: int
    job: int
    attempt: int
    workflow: int | None
    function: str
    args: list[Any]
    kwargs: dict[str, Any]
    secrets: dict[str, str] = {}
    variables: dict[str, str] = {}  # it holds indexed resources: such a process ends with its call
    cpus: tuple[int, ...] = ()  # if any, it runs on these processors only
    version: str | None = None  # version of the function, if the job asks for one
    trace: str | None = None  # the context of its spans, in the form of `traceparent`
    confined: bool = False  # a shared process would not see the folder of its attempt


class Spilled(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """The call is in a memory file, whose descriptor comes with the packet."""

    seq: int


class Stop(msgspec.Struct, array_like=True, frozen=True, tag=3):
    """Give up this call."""

    seq: int


class Answer(msgspec.Struct, array_like=True, frozen=True, tag=4):
    """The answer to an `Ask`: the reply as JSON, or the body of an error."""

    number: int
    body: bytes
    refused: bool = False


class Expect(msgspec.Struct, array_like=True, frozen=True, tag=5):
    """A call may follow at once: stay awake for it."""


class Done(msgspec.Struct, array_like=True, frozen=True, tag=1):
    """The call returned; `result` is JSON, or empty for None."""

    seq: int
    result: bytes | None = None


class Failed(msgspec.Struct, array_like=True, frozen=True, tag=2):
    """The call did not return. The failure is a class by name; `canceled` when it was stopped.

    `misfit`: the function could not be called like this, so nothing of it ran. `raised` is the
    exception that it raised. `missing` says why this worker does not have the function. `variable`
    is the environment variable that it looked for and did not find.
    """

    seq: int
    failure: str
    message: str
    exit_code: int | None = None
    misfit: bool = False
    raised: Raised | None = None
    missing: str | None = None
    variable: str | None = None


class Progress(msgspec.Struct, array_like=True, frozen=True, tag=3):
    """Its progress, as JSON."""

    seq: int
    value: bytes


class Log(msgspec.Struct, array_like=True, frozen=True, tag=4):
    """Its output."""

    seq: int
    data: bytes


class Redirect(msgspec.Struct, array_like=True, frozen=True, tag=5):
    """The function is async and belongs in a loop; nothing of it ran.

    `alone`: it may return files and needs a process of its own.
    """

    seq: int
    alone: bool = False


class Ready(msgspec.Struct, array_like=True, frozen=True, tag=6):
    """The process takes calls from now on."""


class Ask(msgspec.Struct, array_like=True, frozen=True, tag=7):
    """A request, as JSON: "jobs" for a `SubmitRequest`, "step" for a `StepRequest`.

    `number` is returned with the answer.
    """

    seq: int
    number: int
    body: bytes
    what: str = "jobs"


class Alive(msgspec.Struct, array_like=True, frozen=True, tag=9):
    """It is still at work."""

    seq: int


class Last(msgspec.Struct, array_like=True, frozen=True, tag=8):
    """The end of a call that held indexed resources; the process ends with it."""

    seq: int
    end: Done | Failed


Order = Call | Spilled | Stop | Answer | Expect
Report = Done | Failed | Progress | Log | Redirect | Ready | Ask | Last | Alive

encode: Final = msgspec.msgpack.Encoder().encode
decode_orders: Final = msgspec.msgpack.Decoder(list[Order]).decode
decode_packet: Final = msgspec.msgpack.Decoder(Call | Spilled | Expect).decode
decode_reports: Final = msgspec.msgpack.Decoder(list[Report]).decode


def frame(messages: list[Any]) -> bytes:
    """Returns the messages as one frame."""
    body = encode(messages)
    return len(body).to_bytes(4, "little") + body


class Frames:
    """Splits a stream of bytes into the bodies of frames."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Returns the bodies that are complete with these bytes."""
        if self._rest:
            data = self._rest + data
        bodies: list[bytes] = []
        at, size = 0, len(data)
        while size - at >= 4:
            end = at + 4 + int.from_bytes(data[at : at + 4], "little")
            if end > size:
                break
            bodies.append(data[at + 4 : end])
            at = end
        self._rest = data[at:]
        return bodies


def send_file(connection: socket.socket, note: bytes, data: bytes) -> None:
    """Sends data of any size as a memory file, whose descriptor comes with the note."""
    fd = os.memfd_create("message")
    try:
        with open(fd, "wb", closefd=False) as file:
            file.write(data)
        socket.send_fds(connection, [note], [fd])
    finally:
        os.close(fd)
