"""Where the server is, and whom to trust: arguments first, then the environment, then what a
server that was started here has left in its data directory."""

import os
import ssl
import tempfile
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import msgspec

from windlass.domain.values.errors import InvalidInput, Unreachable

DEFAULT_PORT = 7420
MARKER = "server.json"
CLIENT_CERT = "WINDLASS_CLIENT_CERT"
CLIENT_KEY = "WINDLASS_CLIENT_KEY"
LOGINS = "logins.json"  # in the directory of settings


class KnownServer(NamedTuple):
    """A server's address, its token, and the function that renews a refused token."""

    server: str
    token: str | None
    renew: Callable[[str], Awaitable[str | None]] | None = None


class Running(msgspec.Struct):
    """What a started server leaves in its data directory."""

    address: str
    pid: int


def data_directory(data: Path | None = None) -> Path:
    """Returns the data directory: WINDLASS_DATA, else one in the user's home."""
    if data is not None:
        return data
    named = os.environ.get("WINDLASS_DATA")
    if named:
        return Path(named)
    home = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(home) / "windlass"


def find_server(
    server: str | None = None, token: str | None = None, data: Path | None = None
) -> KnownServer:
    """Returns the server to talk to; raises `Unreachable` if none is known.

    Without a token, the login that `windlass login` has left counts.
    """
    address = server_address(server, data)
    secret = token or os.environ.get("WINDLASS_TOKEN")
    if secret:
        return KnownServer(address, secret)
    if has_logins():
        from windlass.client.login import Logins

        logins = Logins()
        login = logins.find(address)
        if login is not None:
            return KnownServer(address, login.token, partial(logins.renew, address))
    return KnownServer(address, _local_token(address, data))


def server_address(server: str | None = None, data: Path | None = None) -> str:
    """Returns the server's address; raises `Unreachable` if none is known."""
    directory = data_directory(data)
    address = server or os.environ.get("WINDLASS_SERVER") or _address(directory)
    if address is None and "WINDLASS_JOB" in os.environ:
        raise Unreachable(
            "no server is known: a job does not learn its server's address; use task.submit and "
            "windlass.send in it, or windlass.Client(address, token) with a token from its secrets"
        )
    if address is None:
        raise Unreachable(
            f"no server is known: none runs from {directory}; start one with `windlass up`, "
            "or set WINDLASS_SERVER and WINDLASS_TOKEN"
        )
    return address


def config_directory() -> Path:
    """Returns where this user's settings of Windlass are."""
    home = os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config"
    return Path(home) / "windlass"


def has_logins() -> bool:
    """Returns whether this user has signed in anywhere, without loading what that needs."""
    return (config_directory() / LOGINS).exists()


class OwnCertificate(NamedTuple):
    """The certificate that a worker presents to a server that asks for one."""

    certificate: Path
    key: Path


def own_certificate(certificate: Path | None, key: Path | None) -> OwnCertificate | None:
    """Returns the files, by default from the environment; raises `InvalidInput` for only one of
    them.
    """
    found = [
        given or (Path(named) if (named := os.environ.get(variable)) else None)
        for given, variable in ((certificate, CLIENT_CERT), (key, CLIENT_KEY))
    ]
    if found[0] is not None and found[1] is not None:
        return OwnCertificate(found[0], found[1])
    if found[0] is not None or found[1] is not None:
        missing = "client_key" if found[1] is None else "client_cert"
        expected = "given too: --client-cert and --client-key need each other"
        raise InvalidInput(missing, expected, "nothing")
    return None


def trust_for(
    server: str, authority: Path | None = None, own: OwnCertificate | None = None
) -> ssl.SSLContext:
    """Returns which certificates to trust: `authority`, else WINDLASS_TLS_CA, else the system's.

    `own` is presented to servers. Without TLS nothing is trusted: reading the system's
    certificates takes longer than most commands.
    """
    if not server.lower().startswith("https:"):
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    named = os.environ.get("WINDLASS_TLS_CA")
    path = authority or (Path(named) if named else None)
    try:
        context = ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        field = "tls_ca" if authority else "WINDLASS_TLS_CA"
        why = (
            error.strerror if isinstance(error, FileNotFoundError | PermissionError) else "not PEM"
        )
        raise InvalidInput(field, f"a file of certificates ({why})", str(path)) from None
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    if own is not None:
        try:
            context.load_cert_chain(own.certificate, own.key)
        except (OSError, ssl.SSLError) as error:
            expected = f"a certificate in PEM, with its key in {own.key} ({error.strerror})"
            raise InvalidInput("client_cert", expected, str(own.certificate)) from None
    return context


def announce(directory: Path, address: str) -> None:
    """Stores the address of this process's server for commands of the same user."""
    content = msgspec.json.encode(Running(address, os.getpid()))
    # Whoever reads it meets a whole file or none; the temporary one is its owner's alone.
    with tempfile.NamedTemporaryFile(dir=directory, prefix=MARKER, delete=False) as file:
        file.write(content)
    Path(file.name).rename(directory / MARKER)


def retract(directory: Path) -> None:
    """Removes what `announce` stored, unless another server has announced itself since."""
    running = _running(directory)
    if running is not None and running.pid == os.getpid():
        (directory / MARKER).unlink(missing_ok=True)


def _running(directory: Path) -> Running | None:
    try:
        return msgspec.json.decode((directory / MARKER).read_bytes(), type=Running)
    except (OSError, msgspec.MsgspecError):
        return None


def _address(directory: Path) -> str | None:
    running = _running(directory)
    return None if running is None else running.address


def _local_token(address: str, data: Path | None) -> str | None:
    """Returns the token of the server on this machine, but not for any other server.

    Another user's program may listen on another port, so only the address counts that the server
    has announced. To name the data directory says that both belong together.
    """
    directory = data_directory(data)
    named = data is not None or bool(os.environ.get("WINDLASS_DATA"))
    known = _address(directory)
    if named or address == known:
        return _token(directory)
    same = known is not None and all(_is_same(one, known) for one in address.split(","))
    return _token(directory) if same else None


def _is_same(address: str, known: str) -> bool:
    """Returns whether both are the same loopback port, whatever the host is called."""
    from windlass.domain.values.addresses import is_loopback

    try:
        one, other = urlsplit(address.strip()), urlsplit(known)
        alike = (one.scheme, one.port) == (other.scheme, other.port)
    except ValueError:
        return False
    return alike and is_loopback(one.hostname or "") and is_loopback(other.hostname or "")


def _token(directory: Path) -> str | None:
    try:
        return (directory / "admin-token").read_text().strip() or None
    except OSError:
        return None
