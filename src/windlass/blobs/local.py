"""Objects in a directory: an object survives a power cut once its put has returned.

An object is written to a file of its own under `tmp/`, flushed to the disk, and renamed to its
place, so a reader never sees half of one. What a crash leaves in `tmp/` is listed like any other
object, for retention to remove. Files are read and written in threads of the event loop's executor,
so a slow disk does not block the loop.
"""

import asyncio
import errno
import os
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Final, Literal, TypeVar

from windlass.domain.values.errors import InvalidInput, NotFound, StoreUnavailable
from windlass.ports.blobs import BlobInfo, check_key, check_prefix

T = TypeVar("T")

CHUNK: Final = 256 * 1024
TEMPORARY: Final = "tmp"
PROBE: Final = 64 * 1024  # free bytes that the disk must have


def from_disk(error: OSError, where: str) -> StoreUnavailable:
    """Returns the error for a disk failure; a full disk has its own code."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
    message = f"the disk that holds {where} is full: free some space" if full else ""
    unavailable = StoreUnavailable(message or f"cannot use {where}: {error}", outcome_unknown=False)
    if full:
        unavailable.code = "disk_full"
    return unavailable


class LocalBlobs:
    """Keeps blobs in one directory that only its owner can enter."""

    def __init__(self, root: Path | str) -> None:
        self.root = Path(root).absolute()
        try:
            for folder in (self.root, self.root / TEMPORARY):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise from_disk(error, str(self.root)) from error

    async def put(self, key: str, data: bytes) -> None:
        target = self._path(key, writing=True)
        await self._run(lambda: self._write(target, data))

    async def put_stream(self, key: str, chunks: AsyncIterator[bytes]) -> int:
        target = self._path(key, writing=True)
        size = 0
        file = await self._run(self._open)
        try:
            async for block in _blocks(chunks):
                await self._run(partial(file.write, block))
                size += len(block)
            await self._run(lambda: self._place(file, target))
        except BaseException:
            _discard(file)
            raise
        return size

    async def get(self, key: str) -> bytes | None:
        path = self._path(key)
        try:
            return await self._run(path.read_bytes, key)
        except NotFound:
            return None

    async def stream(
        self, key: str, start: int = 0, end: int | None = None
    ) -> AsyncIterator[bytes]:
        path = self._path(key)
        file = await self._run(lambda: path.open("rb", buffering=0), key)
        try:
            file.seek(start)
            left = None if end is None else end - start
            while left is None or left > 0:
                count = CHUNK if left is None else min(CHUNK, left)
                data = await self._run(partial(file.read, count))
                if not data:
                    return
                left = None if left is None else left - len(data)
                yield data
        finally:
            file.close()

    async def delete(self, keys: Sequence[str]) -> None:
        paths = [self._path(key) for key in keys]
        await self._run(lambda: self._remove(paths))

    async def list(self, prefix: str, after: str = "") -> AsyncIterator[BlobInfo]:
        folder = check_prefix(prefix)
        for name, info in await self._run(partial(_scan, self.root, folder, after)):
            if info is not None:
                yield info
            else:
                async for inner in self.list(name, after):
                    yield inner

    async def presign(self, method: Literal["GET", "PUT"], key: str, ttl_ms: int) -> str | None:
        """Returns None: a directory has no URL, so files go through the server."""
        del method, ttl_ms
        check_key(key)
        return None

    async def check(self) -> None:
        await self._run(self._try_to_write)

    async def close(self) -> None:
        """Does nothing: no file stays open."""

    async def _run(self, work: Callable[[], T], reading: str = "") -> T:
        """Runs blocking work in a thread; `reading` is the key of an object that may not exist."""
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work)
        except OSError as error:
            if reading and isinstance(error, FileNotFoundError | IsADirectoryError):
                raise NotFound("object", reading) from error
            raise from_disk(error, str(self.root)) from error

    def _path(self, key: str, writing: bool = False) -> Path:
        check_key(key)
        if writing and key.startswith(f"{TEMPORARY}/"):
            raise InvalidInput("key", f"outside of {TEMPORARY}/", key)
        return self.root / key

    def _open(self) -> IO[bytes]:
        """Creates a temporary file of mode 0600."""
        return tempfile.NamedTemporaryFile(dir=self.root / TEMPORARY, delete=False)

    def _try_to_write(self) -> None:
        file = self._open()
        try:
            file.write(bytes(PROBE))
            file.flush()
            os.fsync(file.fileno())
        finally:
            _discard(file)

    def _write(self, target: Path, data: bytes) -> None:
        file = self._open()
        try:
            file.write(data)
            self._place(file, target)
        except BaseException:
            _discard(file)
            raise

    def _place(self, file: IO[bytes], target: Path) -> None:
        """Flushes the file, renames it to its place, and flushes the directory."""
        file.flush()
        os.fsync(file.fileno())
        file.close()
        while True:
            made = _make_folders(target.parent)
            try:
                Path(file.name).rename(target)
                break
            except FileNotFoundError:
                # A delete has just removed the folder because it was empty.
                continue
        for folder in {target.parent, *(folder.parent for folder in made)}:
            _sync_folder(folder)

    def _remove(self, paths: Sequence[Path]) -> None:
        for path in paths:
            path.unlink(missing_ok=True)
            for folder in path.relative_to(self.root).parents[:-1]:
                if folder.name == TEMPORARY:
                    break
                try:
                    (self.root / folder).rmdir()
                except OSError:
                    break


async def _blocks(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """Yields the same bytes in chunks large enough to write."""
    parts: list[bytes] = []
    waiting = 0
    async for chunk in chunks:
        parts.append(chunk)
        waiting += len(chunk)
        if waiting >= CHUNK:
            yield b"".join(parts)
            parts, waiting = [], 0
    yield b"".join(parts)


def _scan(root: Path, folder: str, after: str) -> list[tuple[str, BlobInfo | None]]:
    """Returns the files and folders in a folder, ordered by key; folders have no info."""
    try:
        entries = list(os.scandir(root / folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    start = f"{folder}/" if folder else ""
    found: dict[str, tuple[str, BlobInfo | None]] = {}
    for entry in entries:
        key = start + entry.name
        if entry.is_dir(follow_symlinks=False):
            if f"{key}/" > after or after.startswith(f"{key}/"):
                found[f"{key}/"] = (key, None)
        elif key > after and (info := _describe(key, entry)):
            found[key] = (key, info)
    return [found[order] for order in sorted(found)]


def _describe(key: str, entry: "os.DirEntry[str]") -> BlobInfo | None:
    """Returns None if the file no longer exists."""
    try:
        facts = entry.stat(follow_symlinks=False)
    except FileNotFoundError:
        return None
    return BlobInfo(key, facts.st_size, facts.st_mtime_ns // 1_000_000)


def _make_folders(folder: Path) -> list[Path]:
    """Creates a folder and its parents; returns the new ones."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(mode=0o700, exist_ok=True)
    return missing


def _sync_folder(folder: Path) -> None:
    """Flushes the directory entry to disk."""
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except FileNotFoundError:
        return  # A concurrent delete came first.
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _discard(file: IO[bytes]) -> None:
    file.close()
    Path(file.name).unlink(missing_ok=True)
