"""Answers requests for the page, with the files that the build has made, compressed where accepted.

It is a separate ASGI application, or part of the server's.
"""

import gzip
import hashlib
import mimetypes
from collections.abc import Awaitable, Callable, Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

INDEX: Final = "index.html"
HASHED: Final = "assets/"  # file names in here contain a digest of the content
SUFFIXES: Final = {".br": "br", ".gz": "gzip"}  # the better one first
BASE_TAG: Final = '<meta name="windlass-base" content="/"'

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Any]]
Send = Callable[[Any], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]

# What belongs to the API: there, the page is never the answer.
API_PATHS: Final = ("/api/", "/auth/")
API_NAMES: Final = frozenset({"/healthz", "/readyz", "/metrics", "/openapi.json"})

POLICY: Final = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; "
    b"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
)
HEADERS: Final = (
    (b"content-security-policy", POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"vary", b"accept-encoding"),
)
FOREVER: Final = b"public, max-age=31536000, immutable"
ASK_AGAIN: Final = b"no-cache"  # a cached copy is valid as long as its digest is the same
SAFE: Final = ("GET", "HEAD")


FOLDER: Final = Path(__file__).parent / "static"  # made by `make dashboard`, not in the repository

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
    """All files below a folder, by path; read in advance, so that no path leads elsewhere."""

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


class Page:
    """Serves the files; `answers` says which requests are for it.

    `others` answers API calls, if the page is an application on its own.
    """

    def __init__(self, files: Files | None = None, others: Application | None = None) -> None:
        self._files = Files() if files is None else files
        self._others = others

    def answers(self, scope: Scope) -> bool:
        """Returns whether this request is for the page rather than for the API.

        Unknown paths are views of the page if a browser asks for a document.
        """
        if scope["type"] != "http" or scope["method"] not in SAFE:
            return False
        path = _path(scope)
        if _is_of_api(path):
            return False
        return path == "/" or self._files.find(path[1:]) is not None or _wants_page(scope)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answers one request."""
        if scope["type"] != "http":
            return
        if self._others is not None and _is_of_api(_path(scope)):
            await self._others(scope, receive, send)
            return
        if scope["method"] not in SAFE:
            await _send(send, 405, [(b"allow", b"GET, HEAD")], b"")
            return
        path = _path(scope)
        file = self._files.find(path[1:])
        if file is None and path != "/" and not _wants_page(scope):
            await _send(send, 404, [(b"content-type", b"text/plain")], b"not found\n")
            return
        if file is None:
            file = self._files.index(_base(scope))
        await _send_file(send, scope, file)


def app(server: str | None = None) -> Page:
    """Returns the dashboard as an ASGI application to mount in your own.

    It serves the page under any prefix, and passes the calls of the API there (`/api/`, `/auth/`)
    on to the `server` at this address. Without one, your application must answer these paths.
    People sign in on the page, whoever they are in your application.
    """
    if server is None:
        return Page()
    from windlass.dashboard.proxy import Proxy  # needs a client; servers go without

    return Page(others=Proxy(server))


async def _send_file(send: Send, scope: Scope, file: File) -> None:
    headers = dict(scope["headers"])
    etag = b'"%b"' % file.digest.encode()
    fields = [(b"cache-control", FOREVER if file.is_hashed else ASK_AGAIN), (b"etag", etag)]
    if etag in headers.get(b"if-none-match", b""):
        await _send(send, 304, fields, b"")
        return
    encoding = choose(headers.get(b"accept-encoding", b""), file.bodies)
    body = file.bodies[encoding]
    if encoding != "identity":
        fields.append((b"content-encoding", encoding.encode()))
    fields += [
        (b"content-type", file.media_type.encode()),
        (b"content-length", b"%d" % len(body)),
    ]
    await _send(send, 200, fields, b"" if scope["method"] == "HEAD" else body)


async def _send(send: Send, status: int, fields: list[tuple[bytes, bytes]], body: bytes) -> None:
    headers = [*fields, *HEADERS]
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def choose(accepted: bytes, encodings: Iterable[str]) -> str:
    """Returns the first of these encodings that the client takes."""
    taken = set()
    for part in accepted.decode("latin-1").lower().split(","):
        name, _, weight = part.partition(";")
        if weight.replace(" ", "") not in ("q=0", "q=0.0", "q=0.00", "q=0.000"):
            taken.add(name.strip())
    return next((encoding for encoding in encodings if encoding in taken), "identity")


def _is_of_api(path: str) -> bool:
    return path in API_NAMES or path.startswith(API_PATHS)


def _path(scope: Scope) -> str:
    """Returns the path without the prefix under which the page is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if root and path.startswith(root):
        path = path[len(root) :]
    return path or "/"


def _base(scope: Scope) -> str:
    root: str = scope.get("root_path", "")
    return root.rstrip("/") + "/"


def _wants_page(scope: Scope) -> bool:
    """Returns whether a browser is asking for a document."""
    return any(
        name == b"accept" and b"text/html" in value.lower() for name, value in scope["headers"]
    )
