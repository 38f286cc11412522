"""Sources of real projects, from the source packages of Debian: fetched once and checked."""

import hashlib
import os
import re
import subprocess
import tarfile
import tempfile
import urllib.parse
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

REQUIRED: Final = "WINDLASS_FETCH_REQUIRED"  # set: sources that cannot be fetched are a failure
TIMEOUT_S: Final = 60


@dataclass(frozen=True)
class Source:
    """Where the files of a project come from: their paths in the archive, and their names here.

    `package` is a package of Debian that is made from the source `archive`, which lies beside it.
    """

    name: str
    package: str
    archive: str
    sha256: str
    files: dict[str, str]


def sources_of(source: Source) -> dict[str, str]:
    """Returns the files of a project; skips the test if they cannot be had."""
    kept = Path(tempfile.gettempdir(), f"windlass-fuzz-{source.sha256[:32]}.tar")
    if not kept.exists() or _digest(kept) != source.sha256:
        _fetch(source, kept)
    assert _digest(kept) == source.sha256, f"{source.archive} is not what it was"
    with tarfile.open(kept) as archive:
        return {name: _text(archive, path) for path, name in source.files.items()}


def _fetch(source: Source, into: Path) -> None:
    try:
        with urllib.request.urlopen(_address(source), timeout=TIMEOUT_S) as answer:
            content = answer.read()
    except (OSError, subprocess.SubprocessError) as error:
        if os.environ.get(REQUIRED):
            raise
        pytest.skip(f"cannot fetch {source.name}: {error}")
    fresh = into.with_suffix(f".{os.getpid()}")
    fresh.write_bytes(content)
    fresh.rename(into)


def _address(source: Source) -> str:
    """Returns where this machine's settings of apt find the sources: beside the package."""
    said = subprocess.run(
        ["apt-get", "download", "--print-uris", source.package],
        check=True, capture_output=True, text=True,
    ).stdout  # fmt: skip
    first = re.match(r"'([^']+)'", said)
    if first is None:
        raise OSError(f"apt knows no package {source.package}")
    return urllib.parse.urljoin(first[1], source.archive)


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _text(archive: tarfile.TarFile, path: str) -> str:
    file = archive.extractfile(path)
    assert file is not None
    return file.read().decode()
