"""The media that jobs read and write: files, artifacts of other jobs, and streams."""

import re
from typing import Any, Final

import msgspec

from windlass.domain.tasks.kind import check_scratch_path, check_text, check_texts
from windlass.domain.values.errors import InvalidInput

STREAM_SCHEMES: Final = frozenset(
    {"http", "https", "rtmp", "rtmps", "rtmpt", "rtp", "rtsp", "rtsps", "srt", "tcp", "udp"}
)
SOURCE_SCHEMES: Final = STREAM_SCHEMES | {"ftp"}

_SCHEME: Final = re.compile(r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):")
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")


class Source(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One input: a `url` (or path), or an `artifact` of another `job`.

    `artifact` may be an object that names both; a `{"$lookup": NAME}` becomes one when the job is
    assigned. `format` and `options` go before the input on the command line.
    """

    url: str | None = None
    artifact: str | dict[str, Any] | None = None
    job: int | None = None
    format: str | None = None
    options: list[str] = []


def scheme_of(address: str) -> str | None:
    """Returns the scheme of an address in lower case; None for a path."""
    match = _SCHEME.match(address)
    return match["scheme"].lower() if match else None


def is_stream(address: str) -> bool:
    """Returns True if the output goes over the network and not to a file."""
    return scheme_of(address) in STREAM_SCHEMES


def check_source(source: str | Source, field: str) -> Source:
    """Returns an input in its long form; raises `InvalidInput`."""
    if isinstance(source, str):
        _check_address(source, field)
        return Source(url=source)
    if (source.url is None) == (source.artifact is None):
        raise InvalidInput(field, "either url or artifact", "both" if source.url else "neither")
    if source.format is not None:
        check_name(source.format, f"{field}.format")
    check_texts(source.options, f"{field}.options")
    if source.url is not None:
        # lavfi reads a description of filters, not an address.
        if source.format == "lavfi":
            check_text(source.url, f"{field}.url")
        else:
            _check_address(source.url, f"{field}.url")
    elif isinstance(source.artifact, str):
        check_scratch_path(source.artifact, f"{field}.artifact")
        if source.job is None or not 1 <= source.job <= 2**62:
            raise InvalidInput(f"{field}.job", "the id of a job", source.job)
    return source


def check_output(output: str, field: str) -> None:
    """Raises `InvalidInput` unless this is a stream or a file below the job's own folder."""
    if is_stream(output):
        check_text(output, field)
        return
    scheme = scheme_of(output)
    if scheme is not None:
        allowed = ", ".join(sorted(STREAM_SCHEMES))
        raise InvalidInput(field, f"a relative path or a stream of {allowed}", output)
    check_scratch_path(output, field)


def literal_glob(path: str) -> str:
    """Returns the glob that matches only this path."""
    return re.sub(r"[*?\[]", lambda special: f"[{special[0]}]", path)


def check_name(name: str, field: str) -> None:
    """Raises `InvalidInput` unless this can name a format, encoder or element."""
    if len(name) > 100 or not _NAME.fullmatch(name):
        raise InvalidInput(field, "a name of letters, digits, - _ and .", name)


def _check_address(address: str, field: str) -> None:
    check_text(address, field)
    if not address or not address.isprintable() or address.startswith("-"):
        raise InvalidInput(field, "a path or an address", address)
    scheme = scheme_of(address)
    if scheme is None:
        if ".." in address.split("/"):
            raise InvalidInput(field, "a path without ..", address)
    elif scheme not in SOURCE_SCHEMES:
        allowed = ", ".join(sorted(SOURCE_SCHEMES))
        raise InvalidInput(field, f"a path or an address of {allowed}", address)
