"""A bucket in a plain directory, for one machine or several on a shared file system.

Each object is a file of the same name, so that people can read it. A write locks the
directory, compares, writes a temporary file, flushes it and renames it, so that no reader sees
a partial object. Attributes are stored in a separate file, keyed by the content they belong
to, and written before the content. Whatever a crash leaves behind is therefore consistent.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from windlass.ports.blobs import check_key, check_prefix
from windlass_fuzz.buckets.bucket import Listed, PreconditionFailed, Stored
from windlass_fuzz.buckets.unusable import check_directory, unusable

T = TypeVar("T")

INTERNAL: Final = ".windlass"  # folder of the lock, attributes and temporary files
KEPT: Final = 4  # versions of each object whose attributes we keep


class DirectoryBucket:
    """A `Bucket` below one directory that only its owner can enter.

    With `make=False` it is read-only: a missing directory counts as empty and is not created.
    """

    persistent = True

    def __init__(self, root: Path, *, make: bool = True) -> None:
        self._root = root.absolute()
        self._internal = self._root / INTERNAL
        folders = (self._root, self._internal, self._internal / "tmp")
        try:
            check_directory(self._root)
            for folder in folders if make else folders[:0]:
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self._root.exists():
                os.scandir(self._root).close()
        except OSError as error:
            raise unusable(error, self._root) from error

    @property
    def name(self) -> str:
        return str(self._root)

    async def get(self, key: str) -> Stored | None:
        path = self._path(key)

        def read() -> Stored | None:
            with self._locked(fcntl.LOCK_SH):
                return self._read(key, path)

        return await self._run(read)

    async def put_if(
        self,
        key: str,
        body: bytes,
        *,
        expected: str | None,
        attributes: Mapping[str, str] | None = None,
    ) -> Stored:
        path = self._path(key)

        def write() -> Stored:
            with self._locked(fcntl.LOCK_EX):
                there = self._read(key, path)
                if (None if there is None else there.etag) != expected:
                    raise PreconditionFailed(key)
                known = {} if there is None else self._attributes(key)
                etag = etag_of(body)
                kept = dict(list(known.items())[-(KEPT - 1) :])
                kept.pop(etag, None)
                self._write_atomically(
                    msgspec.json.encode(kept | {etag: attributes or {}}), self._attributes_path(key)
                )
                self._write_atomically(body, path)
                return Stored(body, etag, attributes or {})

        return await self._run(write)

    async def put(self, key: str, source: Path | bytes) -> None:
        path = self._path(key)

        def write() -> None:
            if isinstance(source, bytes):
                self._write_atomically(source, path)
                return
            with self._temporary() as temporary:
                shutil.copyfile(source, temporary)
                self._rename(temporary, path)

        await self._run(write)

    async def download(self, key: str, path: Path) -> bool:
        source = self._path(key)

        def copy() -> bool:
            try:
                shutil.copyfile(source, path)
            except FileNotFoundError:
                return False
            return True

        return await self._run(copy)

    async def exists(self, key: str) -> bool:
        return await self._run(self._path(key).is_file)

    async def delete(self, keys: Sequence[str]) -> None:
        paths = [self._path(key) for key in keys]

        def remove() -> None:
            with self._locked(fcntl.LOCK_EX):
                for key, path in zip(keys, paths, strict=True):
                    path.unlink(missing_ok=True)
                    self._attributes_path(key).unlink(missing_ok=True)

        await self._run(remove)

    async def list(self, prefix: str) -> AsyncIterator[Listed]:
        folder = self._root / check_prefix(prefix)
        for found in await self._run(lambda: sorted(self._walk(folder))):
            yield found

    async def delete_expired(self, prefix: str, older_than_ms: int, now_ms: int) -> int:
        """Does what the lifecycle rule does on S3, and deletes temporary files left by crashes."""
        cutoff = now_ms - older_than_ms
        await self._run(lambda: self._delete_temporary(cutoff))
        old = [found.key async for found in self.list(prefix) if found.modified_ms < cutoff]
        await self.delete(old)
        return len(old)

    async def close(self) -> None:
        """Does nothing: no file stays open."""

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work)
        except OSError as error:
            raise unusable(error, self._root) from error

    def _path(self, key: str) -> Path:
        return self._root / check_key(key)

    def _attributes_path(self, key: str) -> Path:
        return self._internal / "attributes" / f"{key}.json"

    @contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        lock = self._internal / "lock"
        if how == fcntl.LOCK_SH and not lock.exists():
            yield  # nothing was ever written here
            return
        with lock.open("ab") as file:
            fcntl.flock(file, how)
            yield  # closing the file releases the lock

    def _read(self, key: str, path: Path) -> Stored | None:
        try:
            body = path.read_bytes()
        except (FileNotFoundError, IsADirectoryError):
            return None
        etag = etag_of(body)
        return Stored(body, etag, self._attributes(key).get(etag, {}))

    def _attributes(self, key: str) -> dict[str, dict[str, str]]:
        try:
            content = self._attributes_path(key).read_bytes()
            return msgspec.json.decode(content, type=dict[str, dict[str, str]])
        except (FileNotFoundError, msgspec.MsgspecError):
            return {}

    def _write_atomically(self, body: bytes, path: Path) -> None:
        with self._temporary() as temporary:
            temporary.write_bytes(body)
            self._rename(temporary, path)

    @contextmanager
    def _temporary(self) -> Iterator[Path]:
        handle, name = tempfile.mkstemp(dir=self._internal / "tmp")
        os.close(handle)
        try:
            yield Path(name)
        finally:
            Path(name).unlink(missing_ok=True)

    def _delete_temporary(self, cutoff_ms: int) -> None:
        for path in (self._internal / "tmp").iterdir():
            if path.stat().st_mtime_ns // 1_000_000 < cutoff_ms:
                path.unlink(missing_ok=True)

    def _rename(self, temporary: Path, path: Path) -> None:
        _flush(temporary)
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.rename(path)
        _flush(path.parent)

    def _walk(self, folder: Path) -> Iterator[Listed]:
        for path in folder.rglob("*"):
            key = path.relative_to(self._root).as_posix()
            if key.startswith(f"{INTERNAL}/"):
                continue
            try:
                facts = path.stat()
            except FileNotFoundError:
                continue
            if path.is_file():
                yield Listed(key, facts.st_size, facts.st_mtime_ns // 1_000_000)


def etag_of(body: bytes) -> str:
    """Returns a digest of the content, as servers do."""
    return hashlib.sha256(body).hexdigest()


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
