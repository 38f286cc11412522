"""Builds as single objects: the files a build is made of, packed with where they came from."""

import errno
import os
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec

from windlass.domain.values.errors import InvalidInput, WindlassError

ABOUT: Final = "windlass-build.json"
COVERAGE_NOTES: Final = "**/*.gcno"


class DiskFull(WindlassError):
    """No room is left on this machine; nothing else is wrong."""

    code = "disk_full"


class BuildFacts(msgspec.Struct, kw_only=True):
    """What a build tells of itself: `root` is the folder its sources lay in."""

    commit: str
    kind: str
    root: str
    built_at_ms: int


@contextmanager
def room_needed(where: Path) -> Iterator[None]:
    """Say plainly that a disk is full, whoever notices it."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}:
            raise DiskFull(
                f"expected room at {where}, found none ({error.strerror}); free some, or work "
                "elsewhere with --work"
            ) from None
        raise


def pack(root: Path, patterns: Sequence[str], facts: BuildFacts, archive: Path) -> int:
    """Pack the files of a build that the patterns name; how many they are.

    Each pattern must find something: a build that ended well and made nothing has failed.
    """
    files: dict[Path, None] = {}
    for pattern in patterns:
        found = sorted(path for path in root.glob(pattern) if path.is_file())
        if not found:
            expected = f"made by the {facts.kind} build"
            raise InvalidInput(f"binaries {pattern}", expected, "nothing of that name")
        files.update(dict.fromkeys(found))
    if facts.kind == "coverage":
        files.update(dict.fromkeys(sorted(root.glob(COVERAGE_NOTES))))
    with room_needed(archive.parent):
        about = archive.with_name(ABOUT)
        about.write_bytes(msgspec.json.encode(facts))
        with tarfile.open(archive, "w:gz", compresslevel=3) as packed:
            packed.add(about, ABOUT)
            for path in files:
                packed.add(path, path.relative_to(root).as_posix())
    return len(files)


def unpack(archive: Path, folder: Path) -> BuildFacts:
    """The files of a build in `folder`, and what it tells of itself."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with room_needed(folder), tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                _check(member, archive)
                packed.extract(member, folder, set_attrs=False)
                if member.isfile() and member.mode & 0o100:
                    os.chmod(folder / member.name, 0o755)
        return msgspec.json.decode((folder / ABOUT).read_bytes(), type=BuildFacts)
    except (tarfile.TarError, EOFError, FileNotFoundError, msgspec.MsgspecError) as error:
        raise InvalidInput("build", "an archive made by the builder", str(error)) from None


def _check(member: tarfile.TarInfo, archive: Path) -> None:
    """Nothing may land outside of the folder: archives come from a bucket that others write."""
    path = Path(member.name)
    inside = not path.is_absolute() and ".." not in path.parts
    if not inside or not (member.isfile() or member.isdir()):
        raise InvalidInput(f"build {archive.name}", "plain files below its folder", member.name)
