"""Reads the inputs of a .zip archive, such as OSS-Fuzz's seed corpora."""

import stat
import struct
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import Final

from windlass_fuzz.seeds.limits import SeedFolder, SeedsRefused

END: Final = b"PK\x05\x06"
END_SIZE: Final = 22
END_SEARCHED: Final = END_SIZE + 65_535  # of the end record, with the longest comment
LARGE_LOCATOR: Final = b"PK\x06\x07"
LOCATOR_SIZE: Final = 20
ENTRY: Final = 1_024  # bytes of the directory per entry; an honest archive needs less
READABLE: Final = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def read_archive(archive: Path, into: SeedFolder) -> None:
    """Adds the files of an archive; raises `SeedsRefused` for one that is hostile or damaged.

    Sizes are counted while reading, as an archive may claim anything.
    """
    if archive.stat().st_size > into.limits.size:
        raise SeedsRefused(f"the archive is larger than {into.limits.size} bytes (seeds.size)")
    try:
        _check_directory(archive, into.limits.inputs)
        with zipfile.ZipFile(archive) as opened:
            entries = [entry for entry in opened.infolist() if not entry.is_dir()]
            for entry in entries:
                _check_entry(entry)
            if len(entries) > into.limits.inputs:
                raise SeedsRefused(f"more than {into.limits.inputs} inputs (seeds.inputs)")
            for entry in entries:
                into.add(_read(opened, entry, into.limits.largest))
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError,
            ValueError, struct.error) as error:  # fmt: skip
        raise SeedsRefused(f"cannot read the archive: {error}") from None


def _read(opened: zipfile.ZipFile, entry: zipfile.ZipInfo, largest: int) -> bytes:
    """Reads at most one byte more than an input may have, whatever the archive claims."""
    with opened.open(entry) as file:
        return file.read(largest + 1)


def _check_directory(archive: Path, inputs: int) -> None:
    """Refuses a directory that would not fit into memory, before reading it."""
    with archive.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(size - END_SEARCHED - LOCATOR_SIZE, 0))
        end = file.read()
    place = end.rfind(END)
    if place < 0 or len(end) - place < END_SIZE:
        raise SeedsRefused("it is not a .zip archive")
    (length,) = struct.unpack_from("<L", end, place + 12)
    if length > inputs * ENTRY or LARGE_LOCATOR in end[max(place - LOCATOR_SIZE, 0) : place]:
        raise SeedsRefused(f"its directory has room for more than {inputs} inputs (seeds.inputs)")


def _check_entry(entry: zipfile.ZipInfo) -> None:
    """Refuses what no honest corpus contains: links, and names that lead out of a folder."""
    path = PurePosixPath(entry.filename.replace("\\", "/"))
    mode = entry.external_attr >> 16
    odd = stat.S_IFMT(mode) not in (0, stat.S_IFREG)
    if path.is_absolute() or ".." in path.parts or ":" in path.parts[0]:
        raise SeedsRefused(f"the name {entry.filename!r} leads out of the archive")
    if odd or entry.flag_bits & 0x1 or entry.compress_type not in READABLE:
        raise SeedsRefused(f"{entry.filename!r} is a link, encrypted, or packed in an unusual way")
