"""The folders of a server that workers on this machine hide from their jobs.

A worker that a server here starts cannot know where the server keeps its token, its store and
its blobs, so the server tells it in the environment.
"""

import os
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

HIDE_VARIABLE: Final = "WINDLASS_HIDE"  # folders with colons between them


def folders_of(data: Path, store: str, blobs: str) -> list[Path]:
    """Returns the folders of a server: its data directory, and those of its store and blobs.

    A store's folder that also holds the working directory or a home is left out, because jobs
    need it.
    """
    found = [data]
    file, folder = urlsplit(store), urlsplit(blobs)
    if file.scheme == "sqlite" and not _is_needed(Path(file.path).parent):
        found.append(Path(file.path).parent)
    if folder.scheme == "file" and not _is_needed(Path(folder.path)):
        found.append(Path(folder.path))
    return [path.absolute() for path in found]


def hide_from_jobs(folders: Iterable[Path], environ: MutableMapping[str, str]) -> None:
    """Tells workers that inherit this environment to hide folders."""
    known = hidden_folders(environ)
    environ[HIDE_VARIABLE] = os.pathsep.join(map(str, dict.fromkeys((*known, *folders))))


def hidden_folders(environ: Mapping[str, str]) -> tuple[Path, ...]:
    """Returns the folders that a worker was told to hide."""
    return tuple(Path(path) for path in environ.get(HIDE_VARIABLE, "").split(os.pathsep) if path)


def _is_needed(folder: Path) -> bool:
    home = Path(os.environ.get("HOME", "/")).absolute()
    return any(path.is_relative_to(folder.absolute()) for path in (Path.cwd(), home))
