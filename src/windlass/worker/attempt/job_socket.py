"""The socket by which the programs of jobs submit jobs into their own workflow, through their
agent.

All attempts of an agent share it, and each has a token of its own: drawn when its first program
starts, passed in its environment, forgotten when the attempt ends. The token is valid for this
socket only, and only while the attempt runs; the server checks whether it still holds its lease, in
the transaction that writes. It speaks HTTP, so that every program can use it; the HTTP code is
loaded when the first one connects.
"""

import asyncio
import os
import shutil
import socket
import tempfile
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from windlass.domain.values.errors import (
    Conflict,
    InvalidInput,
    NotFound,
    Overloaded,
    StoreUnavailable,
    TooManyRequests,
    Unreachable,
    WindlassError,
)
from windlass.messages.jobs import SubmitReply, SubmitRequest

if TYPE_CHECKING:
    from aiohttp import web

AGENT: Final = "WINDLASS_AGENT"  # where the socket is
TOKEN: Final = "WINDLASS_AGENT_TOKEN"
PATH: Final = "/api/v1/jobs"  # the same path as at a server
PATH_LIMIT: Final = 100  # the system's limit is 107 bytes
APART: Final = "windlass-agent-"
NOTE: Final = "agent.socket"  # tells the next agent where the socket is, if it is elsewhere
BODY_LIMIT: Final = 64 * 1024 * 1024
WAITING: Final = 64
LAST_WORDS_S: Final = 1.0
FORBIDDEN: Final = "forbidden"  # the code of such errors

_STATUS: Final[dict[type[WindlassError], int]] = {
    InvalidInput: 422,
    NotFound: 404,
    Conflict: 409,
    TooManyRequests: 429,
    Overloaded: 503,
    StoreUnavailable: 503,
    Unreachable: 503,
}

Submit = Callable[[SubmitRequest], Awaitable[SubmitReply]]
Key = tuple[int, int]

_decode = msgspec.json.Decoder(SubmitRequest).decode


class JobSocket:
    """Belongs to one agent; `folder` is the agent's own.

    If jobs run as other users, it is `for_all`: then only the tokens of attempts protect it.
    """

    def __init__(self, folder: Path, for_all: bool = False) -> None:
        self._folder = folder
        self._path = folder / "agent.sock"
        self._mode = 0o666 if for_all else 0o600
        self._apart: Path | None = None  # a separate folder, if the agent's path is too long
        self._tokens: dict[Key, str] = {}
        self._submits: dict[str, Submit] = {}
        self._listener: socket.socket | None = None
        self._serving: asyncio.Task[None] | None = None
        self._runner: web.AppRunner | None = None
        self._server: asyncio.AbstractServer | None = None

    @property
    def path(self) -> Path:
        """Returns where it listens."""
        return self._path

    def open(self) -> None:
        """Listens; only programs of this user and of its jobs can connect."""
        if len(os.fsencode(self._path)) > PATH_LIMIT:
            self._apart = _folder_apart(self._folder / NOTE)
            self._path = self._apart / "agent.sock"
        self._path.unlink(missing_ok=True)  # left by a killed agent
        self._listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listener.bind(str(self._path))
        self._path.chmod(self._mode)
        self._listener.listen(WAITING)
        self._listener.setblocking(False)
        asyncio.get_running_loop().add_reader(self._listener.fileno(), self._begin)

    def admit(self, key: Key, submit: Submit) -> dict[str, str]:
        """Returns the environment variables for the programs of an attempt."""
        token = self._tokens.get(key)
        if token is None:
            token = self._tokens[key] = os.urandom(16).hex()
            self._submits[token] = submit
        return {AGENT: str(self._path), TOKEN: token}

    def dismiss(self, key: Key) -> None:
        """Forgets an ended attempt."""
        token = self._tokens.pop(key, None)
        if token is not None:
            del self._submits[token]

    async def close(self) -> None:
        """Closes the socket and removes its files."""
        if self._serving is not None:
            self._serving.cancel()
            await asyncio.wait((self._serving,))
        if self._server is not None:
            self._server.close()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener.fileno())
            self._listener.close()
            self._path.unlink(missing_ok=True)
        if self._apart is not None:
            shutil.rmtree(self._apart, ignore_errors=True)
            (self._folder / NOTE).unlink(missing_ok=True)

    def _begin(self) -> None:
        """Opens the connection of the first program."""
        assert self._listener is not None
        loop = asyncio.get_running_loop()
        loop.remove_reader(self._listener.fileno())
        self._serving = loop.create_task(self._serve(self._listener))

    async def _serve(self, listener: socket.socket) -> None:
        from aiohttp import web

        application = web.Application(client_max_size=BODY_LIMIT)
        application.router.add_route("*", "/{rest:.*}", self._answer)
        self._runner = web.AppRunner(application, access_log=None, shutdown_timeout=LAST_WORDS_S)
        await self._runner.setup()
        assert self._runner.server is not None
        loop = asyncio.get_running_loop()
        self._server = await loop.create_unix_server(self._runner.server, sock=listener.dup())

    async def _answer(self, request: "web.Request") -> "web.Response":
        from aiohttp import web

        status, body = await self._carry_out(request)
        content = msgspec.json.encode(body)
        return web.Response(status=status, body=content, content_type="application/json")

    async def _carry_out(self, request: "web.Request") -> tuple[int, Any]:
        kind, _, token = request.headers.get("Authorization", "").partition(" ")
        submit = self._submits.get(token) if kind == "Bearer" else None
        if submit is None:
            message = f"expected the token of an attempt that runs here, as {TOKEN} has it"
            return 401, {"error": {"code": "unauthorized", "message": message}}
        if (request.method, request.path) != ("POST", PATH):
            message = f"a worker only takes POST {PATH}; for everything else ask a server"
            return 404, {"error": {"code": "not_found", "message": message}}
        try:
            return 201, await submit(read_request(await request.read()))
        except WindlassError as error:
            return _status_of(error), error.describe()


def read_request(body: bytes) -> SubmitRequest:
    """Parses what a program of a job sends; raises `InvalidInput`."""
    try:
        return _decode(body)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError) as error:
        raise InvalidInput("body", "jobs as they are submitted", str(error)) from None


def _status_of(error: WindlassError) -> int:
    if error.code == FORBIDDEN:  # raised in the agent, or answered by the server
        return 403
    return next((_STATUS[kind] for kind in type(error).__mro__ if kind in _STATUS), 500)


def _folder_apart(note: Path) -> Path:
    """Makes a folder for the socket alone; removes the one left by a killed agent."""
    with suppress(OSError, ValueError):
        left = Path(note.read_text())
        if left.name.startswith(APART) and left.lstat().st_uid == os.geteuid():
            shutil.rmtree(left, ignore_errors=True)  # refuses a link
    made = Path(tempfile.mkdtemp(prefix=APART))
    note.write_text(str(made))
    return made
