"""The files of one attempt: its scratch folder, its input and output artifacts.

Files are hashed, sent and placed without blocking the loop.
"""

import hashlib
import mimetypes
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, Final

import msgspec
import structlog

from windlass.domain.matching.isolation import WEAKEST, Isolation
from windlass.domain.tasks.references import DIGEST, FILE, references_in, replaced
from windlass.domain.tasks.sources import literal_glob
from windlass.domain.values.errors import InvalidInput, NotFound, Overloaded, StoreUnavailable
from windlass.ports.clock import Clock
from windlass.ports.executor import Result
from windlass.ports.gateway import AttemptGateway, Holder
from windlass.worker.attempt.context import AgentContext
from windlass.worker.attempt.find_files import find_files
from windlass.worker.attempt.masking import Mask

CHUNK = 1 << 20


async def send(
    gateway: AttemptGateway, holder: Holder, name: str, path: Path, clock: Clock
) -> None:
    """Hashes a file and uploads it."""
    digest = await hash_file(path, clock)
    kind = mimetypes.guess_type(name)[0] or "application/octet-stream"
    await gateway.put_artifact(holder, name, path, digest, kind)


async def hash_file(path: Path, clock: Clock) -> str:
    """Returns the SHA-256 of a file; lets the loop run between chunks."""
    digest = hashlib.sha256()
    with path.open("rb", buffering=0) as file:
        while piece := file.read(CHUNK):
            digest.update(piece)
            await clock.sleep_ms(0)
    return digest.hexdigest()


async def place(
    gateway: AttemptGateway, holder: Holder, job: int, artifact: str, folder: Path, path: str
) -> None:
    """Downloads an artifact to `path` below `folder`."""
    await gateway.get_artifact(holder, job, artifact, _target(folder, path))


def _target(folder: Path, path: str) -> Path:
    root = folder.resolve()
    target = (root / path).resolve()
    if target == root or not target.is_relative_to(root):
        raise InvalidInput("inputs", "a path inside the scratch directory", path)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return target


INPUTS: Final = "inputs"  # where files in arguments are placed in the scratch folder
RESULT_FILE: Final = "result.json"  # the artifact that holds a large result
PAUSES_MS: Final = (1_000, 2_000, 4_000, 8_000)  # between attempts to upload a file
SHOWN: Final = 40  # characters of a name shown in a message

log = structlog.get_logger()


_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


def _files_in(args: Any) -> Iterator[tuple[int, Any]]:
    return enumerate(references_in(args, FILE), 1)


def _pattern_in(folder: Path, path: str) -> str:
    """Returns the glob of a file below the folder; raises `InvalidInput` for one elsewhere."""
    root, given = os.path.realpath(folder), os.path.realpath(path)
    if not given.startswith(f"{root}/"):
        expected = "a file in the scratch directory (windlass.current().scratch)"
        raise InvalidInput("the result", expected, path)
    return literal_glob(os.path.relpath(given, root))


class Files:
    """Takes a scratch folder on first use; `mode` is the isolation of the attempt."""

    __slots__ = ("_context", "_dirty", "_folder", "_holder", "_scratch")

    def __init__(self, context: AgentContext, holder: Holder, mode: Isolation = WEAKEST) -> None:
        self._context = context
        self._scratch = context.isolation.scratch.get(mode, context.scratch)
        self._holder = holder
        self._folder: Path | None = None
        self._dirty = False

    def folder(self) -> Path:
        """Returns the scratch folder, which need not exist yet."""
        if self._folder is None:
            self._folder = self._scratch.take()
        return self._folder

    def made_folder(self) -> Path:
        """Makes the scratch folder and returns it."""
        path = self.folder()
        path.mkdir(mode=0o700, exist_ok=True)
        self._dirty = True
        return path

    def give_back(self, dirty: bool) -> None:
        """Releases the folder; `dirty`: processes left files in it."""
        if self._folder is not None:
            self._scratch.give_back(self._folder, dirty or self._dirty)
            self._folder = None

    async def fetch(self, job: int, artifact: str, path: str) -> None:
        """Places an artifact of another job at `path` in the scratch folder."""
        gateway = self._context.gateway
        try:
            await place(gateway, self._holder, job, artifact, self.made_folder(), path)
        except NotFound:
            raise NotFound(f"artifact {_shortened(artifact)} of job", job) from None

    async def fill(self, args: msgspec.Raw) -> msgspec.Raw:
        """Returns arguments with their files fetched: as paths, or as results that were too
        large.
        """
        read = _decode(args)
        found = [await self._fetched(number, file) for number, file in _files_in(read)]
        values = iter(found)
        return msgspec.Raw(_encode(replaced(read, FILE, lambda _: next(values))))

    async def _fetched(self, number: int, file: Any) -> Any:
        job, artifact, name = self._named(file)
        path = file.get("path") or f"{INPUTS}/{number}/{PurePosixPath(name).name}"
        try:
            await self.fetch(job, artifact, path)
        except NotFound:
            missing = f"artifact {_shortened(artifact)} of job {job}"
            raise InvalidInput("args", "files that exist", missing) from None
        placed = self.folder() / path
        if not file.get("json"):
            return str(placed)
        try:
            return _decode(placed.read_bytes())
        except msgspec.DecodeError as error:
            raise InvalidInput("args", f"JSON in the file {_shortened(name)}", str(error)) from None

    def _named(self, file: Any) -> tuple[int, str, str]:
        """Returns whose artifact a file is, and its local name."""
        fields = file if isinstance(file, dict) else {}
        digest, job, artifact = (fields.get(key) for key in (DIGEST, "job", "artifact"))
        name, path = fields.get("name") or artifact or digest, fields.get("path")
        if isinstance(digest, str):
            job, artifact = self._holder.job, digest
        if not isinstance(path, str | None):
            raise InvalidInput("args", "files with a path below the scratch directory", path)
        if type(job) is int and isinstance(artifact, str) and isinstance(name, str):
            return job, artifact, name
        raise InvalidInput("args", f'{{"{FILE}": …}} that names a file', file)

    async def keep(self, result: Result, mask: Mask | None) -> Result:
        """Returns a result that refers to artifacts for its files and too large parts."""
        value = result.result if mask is None else mask.value(result.result)
        if result.leaves_files:
            paths = [await self._left(path) for path in references_in(value, FILE)]
            names = iter(paths)
            value = replaced(value, FILE, lambda _: {FILE: {"artifact": next(names)}})
        body = _encode(value)
        if len(body) > self._context.result_limit:
            with TemporaryDirectory(prefix="windlass-") as folder:  # out of the job's reach
                path = Path(folder) / RESULT_FILE
                path.write_bytes(body)
                await self._send(RESULT_FILE, path)
            value = {FILE: {"artifact": RESULT_FILE, "json": True, "size": len(body)}}
        return msgspec.structs.replace(result, result=value)

    async def _left(self, path: Any) -> str:
        """Uploads a file that a function has returned, and returns its name as an artifact."""
        folder = self.folder()
        pattern = _pattern_in(folder, str(path))
        for found, real in await find_files(folder, pattern, self._context.clock):
            await self._send(found, real)
            return found
        raise InvalidInput("the result", "a file that exists", str(path))

    async def upload(self, patterns: Sequence[str], missing: Callable[[str], None]) -> None:
        """Uploads the files that match; calls `missing` with patterns that match none."""
        for pattern in patterns:
            found = await find_files(self.folder(), pattern, self._context.clock)
            if not found:
                missing(pattern)
            for name, path in found:
                await self._send(name, path)

    async def _send(self, name: str, path: Path) -> None:
        """Uploads a file; retries for a while if the server cannot take it, to save the work."""
        context = self._context
        for pause_ms in PAUSES_MS:
            try:
                await send(context.gateway, self._holder, name, path, context.clock)
                return
            except (StoreUnavailable, Overloaded) as error:
                job = self._holder.job
                log.warning("upload_failed", job=job, artifact=name, error=error.message)
            await context.clock.sleep_ms(pause_ms)
        await send(context.gateway, self._holder, name, path, context.clock)


def _shortened(artifact: str) -> str:
    """Returns the name of an artifact for a message; names of uploads are long digests."""
    return artifact if len(artifact) <= SHOWN else f"{artifact[:SHOWN]}…"
