"""The certificate of a server: loaded, checked, and loaded again when its files change."""

import asyncio
import os
import ssl
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import structlog

from windlass.domain.values.errors import InvalidInput

log = structlog.get_logger("windlass.server")


class TlsFiles(NamedTuple):
    """A certificate with its key; with `client_ca`, clients may present certificates of it."""

    certificate: Path
    key: Path
    client_ca: Path | None = None

    @property
    def stamp(self) -> tuple[object, ...]:
        """Returns something that differs once a file was replaced or written."""
        found: list[object] = []
        for path in self:
            if path is not None:
                status = path.stat()
                found.append((status.st_mtime_ns, status.st_size, status.st_ino))
        return tuple(found)


class Certificates:
    """The current certificate; connections that are open keep the one they began with."""

    def __init__(self, files: TlsFiles) -> None:
        self.files = files
        self._stamp = files.stamp
        self.context = load_context(files)

    def reload_changed(self) -> None:
        """Loads the files again if one of them has changed."""
        try:
            stamp = self.files.stamp
        except OSError:
            return  # a file that is being replaced
        if stamp != self._stamp:
            self.reload()

    def reload(self) -> None:
        """Loads the files; if they are of no use, the old certificate stays."""
        try:
            self._stamp = self.files.stamp
            self.context = load_context(self.files)
        except (OSError, InvalidInput) as error:
            log.error("certificate_not_reloaded", error=str(error))
        else:
            log.info("certificate_reloaded", path=str(self.files.certificate))


def load_context(files: TlsFiles) -> ssl.SSLContext:
    """Returns the settings of new connections; raises `InvalidInput` for files of no use."""
    for name, path in zip(("tls_cert", "tls_key", "tls_client_ca"), files, strict=True):
        if path is not None and not os.access(path, os.R_OK):
            raise InvalidInput(name, "a readable file", str(path))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(files.certificate, files.key)
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            got = f"another in {files.key}"
            raise InvalidInput("tls_key", "the key of --tls-cert", got) from None
        expected = f"a certificate in PEM, with its key in {files.key}"
        raise InvalidInput("tls_cert", expected, f"something else in {files.certificate}") from None
    if files.client_ca is not None:
        _trust_clients(context, files.client_ca)
    return context


def _trust_clients(context: ssl.SSLContext, authority: Path) -> None:
    """Verifies the certificates that clients present; who needs one is decided per route."""
    try:
        context.load_verify_locations(authority)
    except ssl.SSLError:
        got = f"something else in {authority}"
        raise InvalidInput("tls_client_ca", "certificates in PEM", got) from None
    context.verify_mode = ssl.CERT_OPTIONAL


def names_of(transport: asyncio.BaseTransport) -> Sequence[str]:
    """Returns the names in the verified certificate of the other end; none without one."""
    found: Mapping[str, Any] = transport.get_extra_info("peercert") or {}
    subject = dict(pair for part in found.get("subject", ()) for pair in part)
    common = [subject["commonName"]] if "commonName" in subject else []
    return [*common, *(value for kind, value in found.get("subjectAltName", ()) if kind == "DNS")]
