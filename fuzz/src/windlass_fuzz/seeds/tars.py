"""Reads the inputs of .tar archives, plain or packed with gzip or zstd.

An archive may be hostile: it is read as a stream, and everything that it claims is counted.
"""

import gzip
import shutil
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import IO, Any, Final, Self

from windlass.ports.clock import Clock
from windlass_fuzz.processes.runner import MIB, Limits, run
from windlass_fuzz.seeds.limits import SeedFolder, SeedLimits, SeedsRefused

PLAIN: Final = (".tar",)
GZIPPED: Final = (".tar.gz", ".tgz")
ZSTD: Final = (".tar.zst",)
MAX_NAME: Final = 64 * 1024  # of a header that only names the next entry
BLOCK: Final = 512
UNPACK_MS: Final = 600_000
_NAMING: Final = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip


class _Entry(tarfile.TarInfo):
    """An entry whose names fit into memory."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> Self:
        entry = super().frombuf(buf, encoding, errors)
        if entry.type in _NAMING and entry.size > MAX_NAME:
            raise SeedsRefused("a name in the archive is too long")
        return entry


class _Counted:
    """A stream that fails once it is longer than an archive may be."""

    def __init__(self, source: IO[bytes], most: int) -> None:
        self._source = source
        self._left = most

    def read(self, size: int) -> bytes:
        data = self._source.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise SeedsRefused("the archive unpacks to more than seeds.size and seeds.inputs allow")
        return data


async def read_tar(archive: Path, name: str, into: SeedFolder, clock: Clock) -> None:
    """Adds the files of an archive; its name tells the format."""
    if archive.stat().st_size > into.limits.size:
        raise SeedsRefused(f"the archive is larger than {into.limits.size} bytes (seeds.size)")
    if not name.endswith(ZSTD):
        _read(archive, name.endswith(GZIPPED), into)
        return
    unpacked = archive.with_name(f"{archive.name}.unpacked")
    try:
        await _decompress(archive, unpacked, _most(into.limits), clock)
        _read(unpacked, False, into)
    finally:
        unpacked.unlink(missing_ok=True)


def _most(limits: SeedLimits) -> int:
    """Returns the maximum length of an honest archive: inputs are padded and have headers."""
    return 2 * limits.size + limits.inputs * 4 * BLOCK + MIB


async def _decompress(archive: Path, into: Path, most: int, clock: Clock) -> None:
    """Runs zstd, since not every supported Python has a module for it."""
    program = shutil.which("zstd")
    if program is None:
        raise SeedsRefused("install zstd to read .tar.zst archives")
    into.write_bytes(b"")
    errors = into.with_name(f"{into.name}.log")
    limits = Limits(UNPACK_MS, memory=1024 * MIB, output=most, file_size=most + MIB)
    argv = [program, "-dcq", "--memory=512MB", "--", str(archive)]
    try:
        ended = await run(
            argv, cwd=into.parent, log=into, limits=limits, clock=clock, errors=errors
        )
    finally:
        errors.unlink(missing_ok=True)
    if ended.reason == "output" or into.stat().st_size > most:
        raise SeedsRefused("the archive unpacks to more than seeds.size and seeds.inputs allow")
    if not ended.ok:
        raise SeedsRefused(f"cannot read the archive: zstd {ended.describe(limits)}")


def _read(archive: Path, packed: bool, into: SeedFolder) -> None:
    try:
        with _opened(archive, packed) as source:
            counted: Any = _Counted(source, _most(into.limits))
            with tarfile.open(fileobj=counted, mode="r|", tarinfo=_Entry) as opened:
                _add_all(opened, into)
    except (tarfile.TarError, zlib.error, EOFError, OSError, ValueError, RecursionError) as error:
        raise SeedsRefused(f"cannot read the archive: {error}") from None


@contextmanager
def _opened(archive: Path, packed: bool) -> Iterator[IO[bytes]]:
    with archive.open("rb") as file:
        if not packed:
            yield file
            return
        with gzip.open(file) as unpacked:
            yield unpacked  # type: ignore[misc]


def _add_all(opened: tarfile.TarFile, into: SeedFolder) -> None:
    files = 0
    for entries, entry in enumerate(opened):
        _check(entry)
        files += entry.isreg()
        if files > into.limits.inputs or entries > 2 * into.limits.inputs + BLOCK:
            raise SeedsRefused(f"more than {into.limits.inputs} inputs (seeds.inputs)")
        content = opened.extractfile(entry) if entry.isreg() else None
        if content is not None:
            into.add(content.read(into.limits.largest + 1))


def _check(entry: tarfile.TarInfo) -> None:
    """Refuses what no honest corpus contains: links, devices, names that lead out of a folder."""
    path = PurePosixPath(entry.name.replace("\\", "/"))
    if path.is_absolute() or ".." in path.parts:
        raise SeedsRefused(f"the name {entry.name[:100]!r} leads out of the archive")
    if not (entry.isreg() or entry.isdir()) or entry.issparse():
        raise SeedsRefused(f"{entry.name[:100]!r} is a link, or not a plain file")
