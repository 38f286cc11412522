"""A gateway for agents in other processes: one call for each connection, in JSON."""

import asyncio
import contextlib
from pathlib import Path
from typing import Any, Literal

import msgspec

from windlass.domain.values.errors import Conflict, NotFound, Unreachable, WindlassError
from windlass.messages.files import StackReport
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.messages.steps import StepReply, StepRequest
from windlass.messages.sync import EnrolReply, EnrolRequest, SyncReply, SyncRequest
from windlass.ports.gateway import Gateway, Holder


class _Call(msgspec.Struct):
    method: str
    args: msgspec.Raw


class _Answer(msgspec.Struct):
    value: msgspec.Raw = msgspec.Raw(b"null")
    code: str = ""
    message: str = ""
    retry_after_ms: int | None = None


_ARGUMENTS: dict[str, Any] = {
    "enrol": tuple[EnrolRequest],
    "sync": tuple[int, SyncRequest],
    "leave": tuple[int, int],
    "append_log": tuple[Holder, int, bytes],
    "end_log": tuple[Holder, int, Literal["committed", "lost"], int],
    "progress": tuple[Holder, Any],
    "measured": tuple[Holder, int],
    "submit": tuple[Holder, SubmitRequest],
    "step": tuple[Holder, StepRequest],
    "put_artifact": tuple[Holder, str, Path, str, str],
    "get_artifact": tuple[Holder, int, str, Path],
}


class Bridge:
    """The serving side, in the test's process. `cut` lets nobody through."""

    def __init__(self, gateway: Gateway, path: Path) -> None:
        self.path = path
        self.cut = False
        self.refused = 0
        self.visited = asyncio.Event()
        self.syncs: asyncio.Queue[SyncRequest] = asyncio.Queue()
        self._gateway = gateway
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_unix_server(self._serve, self.path, limit=2**24)
        self.path.chmod(0o777)

    async def close(self) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._open:
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        await self._server.wait_closed()

    async def wants_nothing(self) -> None:
        """Wait until an agent with free slots has said that it wants no jobs."""
        while (await self.syncs.get()).want:
            pass

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        self.visited.set()
        self.refused += self.cut
        try:
            if not self.cut and (line := await reader.readline()):
                answer = await self._answer(msgspec.json.decode(line, type=_Call))
                if not self.cut:
                    writer.write(msgspec.json.encode(answer) + b"\n")
                    await writer.drain()
        except (OSError, asyncio.CancelledError):
            pass
        finally:
            self._open.discard(task)
            writer.close()
            with contextlib.suppress(OSError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _answer(self, call: _Call) -> _Answer:
        kind = _ARGUMENTS[call.method]
        args = msgspec.json.decode(call.args, type=kind, dec_hook=lambda to, value: to(value))
        if call.method == "sync":
            self.syncs.put_nowait(args[1])
        try:
            value = await getattr(self._gateway, call.method)(*args)
        except WindlassError as error:
            wait = getattr(error, "retry_after_ms", None)
            return _Answer(code=error.code, message=error.message, retry_after_ms=wait)
        return _Answer(msgspec.Raw(msgspec.json.encode(value)))


class BridgeGateway:
    """The calling side; implements `Gateway`. Both sides see the same files."""

    def __init__(self, path: Path) -> None:
        self._path = path

    async def enrol(self, request: EnrolRequest) -> EnrolReply:
        reply: EnrolReply = await self._call(EnrolReply, "enrol", request)
        return reply

    async def sync(self, worker: int, request: SyncRequest) -> SyncReply:
        reply: SyncReply = await self._call(SyncReply, "sync", worker, request)
        return reply

    async def leave(self, worker: int, incarnation: int) -> None:
        await self._call(None, "leave", worker, incarnation)

    async def append_log(self, holder: Holder, offset: int, data: bytes) -> int:
        position: int = await self._call(int, "append_log", holder, offset, data)
        return position

    async def end_log(
        self,
        holder: Holder,
        size: int,
        state: Literal["committed", "lost"],
        peak_memory: int = 0,
    ) -> None:
        await self._call(None, "end_log", holder, size, state, peak_memory)

    async def progress(self, holder: Holder, value: Any) -> None:
        await self._call(None, "progress", holder, value)

    async def measured(self, holder: Holder, duration_ms: int) -> int | None:
        timeout_ms: int | None = await self._call(int | None, "measured", holder, duration_ms)
        return timeout_ms

    async def submit(self, holder: Holder, request: SubmitRequest) -> SubmitReply:
        reply: SubmitReply = await self._call(SubmitReply, "submit", holder, request)
        return reply

    async def step(self, holder: Holder, request: StepRequest) -> StepReply:
        reply: StepReply = await self._call(StepReply, "step", holder, request)
        return reply

    async def stack(self, holder: Holder, report: StackReport) -> None:
        await self._call(None, "stack", holder, report)

    async def put_artifact(
        self, holder: Holder, name: str, path: Path, sha256: str, content_type: str
    ) -> None:
        await self._call(None, "put_artifact", holder, name, path, sha256, content_type)

    async def get_artifact(self, holder: Holder, job: int, name: str, path: Path) -> None:
        await self._call(None, "get_artifact", holder, job, name, path)

    async def close(self) -> None:
        """Nothing stays open between calls."""

    async def _call(self, kind: Any, method: str, *args: Any) -> Any:
        try:
            reader, writer = await asyncio.open_unix_connection(self._path, limit=2**24)
        except OSError as error:
            raise Unreachable(str(error)) from error
        try:
            body = _Call(method, msgspec.Raw(msgspec.json.encode(args, enc_hook=str)))
            writer.write(msgspec.json.encode(body) + b"\n")
            line = await reader.readline()
        except OSError as error:
            raise Unreachable(str(error)) from error
        finally:
            writer.close()
        if not line:
            raise Unreachable("the connection was closed")
        return _read(msgspec.json.decode(line, type=_Answer), kind)


def _read(answer: _Answer, kind: Any) -> Any:
    if answer.code == "not_found":
        raise NotFound("worker", answer.message)
    if answer.code:
        raise Conflict(answer.code, answer.message, answer.retry_after_ms)
    return msgspec.json.decode(answer.value, type=kind)
