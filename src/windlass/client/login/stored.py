"""Logins of this user, one for each server, in a file that only they can read."""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import msgspec

from windlass.client.login.provider import refresh
from windlass.client.settings import LOGINS, config_directory
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.ports.loop_time import pass_time

LOCK_PAUSE_SECONDS: Final = 0.05


class Login(msgspec.Struct, frozen=True):
    """What a sign-in stored. Without a `refresh_token` it ends with its token."""

    issuer: str
    client_id: str
    token: str
    refresh_token: str = ""


class Logins:
    """The file of logins."""

    def __init__(self, directory: Path | None = None) -> None:
        self._path = (directory or config_directory()) / LOGINS

    def find(self, server: str) -> Login | None:
        """Returns the login at this server, or at the first of several."""
        return self._read().get(_first(server))

    def keep(self, server: str, login: Login) -> None:
        """Stores a login; the file is private from the start, and never half written."""
        self._write({**self._read(), _first(server): login})

    def remove(self, server: str) -> Login | None:
        """Forgets a login and returns it."""
        known = self._read()
        login = known.pop(_first(server), None)
        if login is not None:
            self._write(known)
        return login

    async def renew(self, server: str, refused: str) -> str | None:
        """Returns a token to use instead of the refused one, or None if there is none.

        Only one process at a time asks: many providers accept a refresh token only once.
        """
        async with self._locked():
            login = self.find(server)
            if login is None:
                return None
            if login.token != refused:
                return login.token  # another process has renewed it
            if not login.refresh_token:
                return None
            try:
                fresh = await refresh(login.issuer, login.client_id, login.refresh_token)
            except WindlassError:
                return None  # the server's refusal says more than we know
            kept = fresh.refresh_token or login.refresh_token
            self.keep(server, Login(login.issuer, login.client_id, fresh.id_token, kept))
            return fresh.id_token

    def _read(self) -> dict[str, Login]:
        try:
            with self._path.open("rb") as file:
                if os.fstat(file.fileno()).st_mode & 0o077:
                    raise InvalidInput(
                        "login", "kept in a file that only you can read (chmod 600)",
                        str(self._path),
                    )  # fmt: skip
                return msgspec.json.decode(file.read(), type=dict[str, Login])
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError):
            raise InvalidInput("login", "a readable file of logins", str(self._path)) from None

    def _write(self, logins: dict[str, Login]) -> None:
        self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(
            dir=self._path.parent, prefix=LOGINS, delete=False
        ) as file:
            file.write(msgspec.json.encode(logins))  # such files have mode 600
        Path(file.name).rename(self._path)

    @contextlib.asynccontextmanager
    async def _locked(self) -> AsyncIterator[None]:
        lock = self._path.with_suffix(".lock")
        descriptor = os.open(lock, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            while True:
                try:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await pass_time(LOCK_PAUSE_SECONDS)
            yield
        finally:
            os.close(descriptor)


def _first(server: str) -> str:
    return server.split(",", maxsplit=1)[0].strip().rstrip("/").lower()
