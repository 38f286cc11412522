"""The files of the page, as the build has made them, with their compressed forms."""

import gzip
import hashlib
import mimetypes
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple

FOLDER: Final = Path(__file__).parent / "static"  # made by `make dashboard`, not in the repository
INDEX: Final = "index.html"
HASHED: Final = "assets/"  # names in here contain a digest of what is inside
SUFFIXES: Final = {".br": "br", ".gz": "gzip"}  # the better one first
BASE_TAG: Final = '<meta name="windlass-base" content="/"'
NOT_BUILT: Final = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Windlass</title></head><body>
<h1>The dashboard is not built</h1>
<p>This installation was made from the sources without it. Run <code>make dashboard</code> in the
folder of the sources, and load this page again. The API and the command line work without it.</p>
</body></html>
"""


class File(NamedTuple):
    """One file: its bytes in each encoding; `identity` is the plain one."""

    media_type: str
    digest: str
    is_hashed: bool  # its name changes with its content, so that caches never ask again
    bodies: Mapping[str, bytes]


class Files:
    """All files below a folder, by their path; read at once, so that a path leads nowhere else."""

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        self._read_at = 0.0
        self._files: Mapping[str, File] = {}
        self._indexes: dict[str, File] = {}  # by prefix
        self._look()

    def find(self, path: str) -> File | None:
        """Returns the file with this path, without a slash in front; None if there is none."""
        return None if path == INDEX else self._files.get(path)

    def index(self, base: str) -> File:
        """Returns the page itself, for a server that has it under this prefix."""
        self._look()
        known = self._indexes.get(base)
        if known is None:
            known = self._indexes[base] = self._make_index(base)
        return known

    def _look(self) -> None:
        """Reads the files, again if they were built since."""
        try:
            built_at = (self._folder / INDEX).stat().st_mtime
        except OSError:
            built_at = 0.0
        if built_at == self._read_at and self._files:
            return
        self._read_at = built_at
        self._files = _read(self._folder, built_at) if built_at else {}
        self._indexes.clear()

    def _make_index(self, base: str) -> File:
        found = self._files.get(INDEX)
        if found is None:
            return _file(NOT_BUILT, "text/html", {})
        text = found.bodies["identity"].decode()
        text = text.replace(BASE_TAG, BASE_TAG.replace('"/"', f'"{_escape(base)}"'))
        body = text.replace('"./', f'"{_escape(base)}').encode()
        return _file(body, "text/html", {"gzip": gzip.compress(body, mtime=0)})


@lru_cache(maxsize=1)  # servers of one process share them
def _read(folder: Path, built_at: float) -> Mapping[str, File]:
    del built_at  # what was read before a build does not count
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        path.relative_to(folder).as_posix(): _with_forms(path, folder)
        for path in paths
        if path.suffix not in SUFFIXES
    }


def _with_forms(path: Path, folder: Path) -> File:
    forms = {}
    for suffix, encoding in SUFFIXES.items():
        compressed = path.with_name(path.name + suffix)
        if compressed.is_file():
            forms[encoding] = compressed.read_bytes()
    kind = mimetypes.guess_type(path.name)[0] or "application/octet-stream"
    is_hashed = path.relative_to(folder).as_posix().startswith(HASHED)
    return _file(path.read_bytes(), kind, forms, is_hashed)


def _file(body: bytes, kind: str, forms: Mapping[str, bytes], is_hashed: bool = False) -> File:
    is_text = kind.startswith("text/") or kind.endswith(("javascript", "xml", "json"))
    media_type = f"{kind}; charset=utf-8" if is_text else kind
    digest = hashlib.sha256(body).hexdigest()[:20]
    return File(media_type, digest, is_hashed, {**forms, "identity": body})


def _escape(text: str) -> str:
    """Returns a prefix as the value of an attribute."""
    for character, name in (("&", "&amp;"), ('"', "&quot;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, name)
    return text
