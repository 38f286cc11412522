"""Packs the files of a build and their metadata into one archive, and unpacks it."""

import os
import tarfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from windlass_fuzz.errors import InvalidSetting
from windlass_fuzz.processes.disk_space import report_disk_full

ABOUT: Final = "windlass-build.json"
COVERAGE_NOTES: Final = "**/*.gcno"


class BuildMetadata(msgspec.Struct, kw_only=True):
    """Describes a build; `root` is the folder in which its sources were."""

    commit: str
    kind: str
    root: str
    built_at_ms: int


def pack(root: Path, patterns: Sequence[str], metadata: BuildMetadata, archive: Path) -> int:
    """Packs the files that match the patterns, and returns how many there are.

    Every pattern must match a file: a build that succeeds without output has failed. Links within
    the build are replaced by their target files.
    """
    files: dict[Path, None] = {}
    for pattern in patterns:
        found = sorted(path for path in root.glob(pattern) if path.is_file())
        if not found:
            message = f"the {metadata.kind} build made no file that matches {pattern} (binaries)"
            raise InvalidSetting("binaries", message, pattern)
        files.update(dict.fromkeys(found))
    if metadata.kind == "coverage":
        files.update(dict.fromkeys(sorted(root.glob(COVERAGE_NOTES))))
    for path in files:
        if not path.resolve().is_relative_to(root.resolve()):
            name = path.relative_to(root).as_posix()
            message = f"{name} (binaries) is a link to {path.resolve()}, outside the build"
            raise InvalidSetting("binaries", f"{message}; let the build copy it", name)
    with report_disk_full(archive.parent):
        about = archive.with_name(ABOUT)
        about.write_bytes(msgspec.json.encode(metadata))
        with tarfile.open(archive, "w:gz", compresslevel=3, dereference=True) as packed:
            packed.add(about, ABOUT)
            for path in files:
                packed.add(path, path.relative_to(root).as_posix())
    return len(files)


def unpack(archive: Path, folder: Path) -> BuildMetadata:
    """Unpacks a build into `folder` and returns its metadata."""
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with report_disk_full(folder), tarfile.open(archive, "r:gz") as packed:
            for member in packed:
                _check(member, archive)
                packed.extract(member, folder, set_attrs=False)
                if member.isfile() and member.mode & 0o100:
                    # Only its owner may change it; others may run it, as any program.
                    os.chmod(folder / member.name, 0o755)  # nosec B103
        return msgspec.json.decode((folder / ABOUT).read_bytes(), type=BuildMetadata)
    except (tarfile.TarError, EOFError, FileNotFoundError, msgspec.MsgspecError) as error:
        raise InvalidSetting("build", f"cannot unpack the build: {error}") from None


def _check(member: tarfile.TarInfo, archive: Path) -> None:
    """Refuses entries outside the folder: others can write to the bucket."""
    path = Path(member.name)
    inside = not path.is_absolute() and ".." not in path.parts
    if not inside or not (member.isfile() or member.isdir()):
        message = f"refused to unpack {member.name} from {archive.name}: it is not a plain file"
        raise InvalidSetting("build", f"{message} below the folder", member.name)
