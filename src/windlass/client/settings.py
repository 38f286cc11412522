"""Where the server is: arguments first, then the environment, then what `up` left here."""

import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from windlass.domain.errors import Unreachable

DEFAULT_PORT = 7420


class Found(NamedTuple):
    """A server's address and the token to present there."""

    server: str
    token: str | None


class Running(msgspec.Struct):
    """What a started server leaves in its data directory."""

    address: str
    pid: int


def data_directory(data: Path | None = None) -> Path:
    """The data directory: WINDLASS_DATA, else one in the user's home."""
    if data is not None:
        return data
    named = os.environ.get("WINDLASS_DATA")
    if named:
        return Path(named)
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "windlass"


def find_server(
    server: str | None = None, token: str | None = None, data: Path | None = None
) -> Found:
    """The server to talk to; raises `Unreachable` when none is known."""
    directory = data_directory(data)
    address = server or os.environ.get("WINDLASS_SERVER") or _address(directory)
    secret = token or os.environ.get("WINDLASS_TOKEN") or _token(directory)
    if address is None:
        raise Unreachable(
            f"no server is known: none runs from {directory}; start one with `windlass up`, "
            "or set WINDLASS_SERVER and WINDLASS_TOKEN"
        )
    return Found(address, secret)


def _address(directory: Path) -> str | None:
    try:
        return msgspec.json.decode((directory / "server.json").read_bytes(), type=Running).address
    except (OSError, msgspec.MsgspecError):
        return None


def _token(directory: Path) -> str | None:
    try:
        return (directory / "admin-token").read_text().strip() or None
    except OSError:
        return None
