"""The files of one attempt: its scratch folder, its input and output artifacts.

Files are hashed, sent and placed without blocking the loop.
"""

import fnmatch
import hashlib
import mimetypes
import os
import re
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
from windlass.worker.attempt.secrets import Mask

MAX_ENTRIES: Final = 1_000_000
PAUSE_AFTER: Final = 500  # entries, about a millisecond

_ANY_DEPTH: Final = "**"

Part = Callable[[str], object] | None  # None: any number of folders
Positions = frozenset[int]

CHUNK = 1 << 20


async def find_files(folder: Path, pattern: str, clock: Clock) -> list[tuple[str, Path]]:
    """Returns name and path of the matching files below `folder`, in order.

    Files outside of it are left out, whatever links point to. Raises `InvalidInput` if there are
    too many entries to walk.
    """
    names: list[str] = []
    for count, name in enumerate(_walk(folder, _parts(pattern))):
        if count >= MAX_ENTRIES:
            raise InvalidInput("artifacts", f"found among at most {MAX_ENTRIES:,} files", pattern)
        if count % PAUSE_AFTER == PAUSE_AFTER - 1:
            await clock.sleep_ms(0)
        if name is not None:
            names.append(name)
    return list(_inside(folder, sorted(names)))


def _inside(folder: Path, names: Sequence[str]) -> Iterator[tuple[str, Path]]:
    root = folder.resolve()
    for name in names:
        path = (root / name).resolve()
        if path.is_relative_to(root) and path.is_file():
            yield name, path


def _parts(pattern: str) -> Sequence[Part]:
    words = [word for word in pattern.split("/") if word not in ("", ".")]
    return [
        None if word == _ANY_DEPTH else re.compile(fnmatch.translate(word)).match
        for number, word in enumerate(words)
        if word != _ANY_DEPTH or words[number - 1 : number] != [_ANY_DEPTH]
    ]


def _walk(folder: Path, parts: Sequence[Part]) -> Iterator[str | None]:
    """Yields each visited entry: its name if it matches, else None."""
    root = folder.resolve()
    waiting = [("", _reach(parts, {0}))]
    while waiting:
        below, positions = waiting.pop()
        for entry in _entries(root / below):
            name = f"{below}{entry.name}"
            is_folder = _is_folder(entry, root)
            # `**` does not follow links to folders, so a circular walk ends with the pattern.
            deeper = not (is_folder and entry.is_symlink())
            after = _advance(parts, positions, entry.name, deeper)
            if is_folder and any(position < len(parts) for position in after):
                waiting.append((f"{name}/", after))
            yield name if not is_folder and len(parts) in after else None


def _entries(folder: Path) -> Iterator["os.DirEntry[str]"]:
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except OSError:
        return  # gone, not readable or too deep


def _is_folder(entry: "os.DirEntry[str]", root: Path) -> bool:
    """Returns whether it is a folder inside of `root`, or a link to one."""
    if not entry.is_symlink():
        return entry.is_dir()
    target = Path(os.path.realpath(entry.path))
    return target.is_relative_to(root) and target.is_dir()


def _advance(parts: Sequence[Part], positions: Positions, name: str, deeper: bool) -> Positions:
    after: set[int] = set()
    for position in positions:
        if position == len(parts):
            continue
        part = parts[position]
        if part is None:
            after |= {position} if deeper else set()
        elif part(name):
            after.add(position + 1)
    return _reach(parts, after)


def _reach(parts: Sequence[Part], positions: set[int]) -> Positions:
    """Adds the positions after each `**`, which may match no folder at all."""
    for position in sorted(positions):
        if position < len(parts) and parts[position] is None:
            positions.add(position + 1)
    return frozenset(positions)


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
        """Fetches files among the arguments; returns these with paths, or with large results."""
        read = _decode(args)
        files = enumerate(references_in(read, FILE), 1)
        values = iter([await self._fetched(number, file) for number, file in files])
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
