"""Builds as single objects: the files a build is made of, packed with where they came from."""

import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from windlass.domain.errors import InvalidInput
from windlass.fuzzing.processes.disk_space import report_disk_full

ABOUT: Final = "windlass-build.json"
COVERAGE_NOTES: Final = "**/*.gcno"


class BuildMetadata(msgspec.Struct, kw_only=True):
    """What a build tells of itself: `root` is the folder its sources lay in."""

    commit: str
    kind: str
    root: str
    built_at_ms: int


def pack(root: Path, patterns: Sequence[str], metadata: BuildMetadata, archive: Path) -> int:
    """Pack the files of a build that the patterns name; how many they are.

    Each pattern must find something: a build that ended well and made nothing has failed.
    """
    files: dict[Path, None] = {}
    for pattern in patterns:
        found = sorted(path for path in root.glob(pattern) if path.is_file())
        if not found:
            expected = f"made by the {metadata.kind} build"
            raise InvalidInput(f"binaries {pattern}", expected, "nothing of that name")
        files.update(dict.fromkeys(found))
    if metadata.kind == "coverage":
        files.update(dict.fromkeys(sorted(root.glob(COVERAGE_NOTES))))
    with report_disk_full(archive.parent):
        about = archive.with_name(ABOUT)
        about.write_bytes(msgspec.json.encode(metadata))
        with tarfile.open(archive, "w:gz", compresslevel=3) as packed:
            packed.add(about, ABOUT)
            for path in files:
                packed.add(path, path.relative_to(root).as_posix())
    return len(files)


def unpack(archive: Path, folder: Path) -> BuildMetadata:
    """The files of a build in `folder`, and what it tells of itself."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with report_disk_full(folder), tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                _check(member, archive)
                packed.extract(member, folder, set_attrs=False)
                if member.isfile() and member.mode & 0o100:
                    os.chmod(folder / member.name, 0o755)
        return msgspec.json.decode((folder / ABOUT).read_bytes(), type=BuildMetadata)
    except (tarfile.TarError, EOFError, FileNotFoundError, msgspec.MsgspecError) as error:
        raise InvalidInput("build", "an archive made by the builder", str(error)) from None


def _check(member: tarfile.TarInfo, archive: Path) -> None:
    """Nothing may land outside of the folder: archives come from a bucket that others write."""
    path = Path(member.name)
    inside = not path.is_absolute() and ".." not in path.parts
    if not inside or not (member.isfile() or member.isdir()):
        raise InvalidInput(f"build {archive.name}", "plain files below its folder", member.name)
