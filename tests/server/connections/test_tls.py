"""TLS of a server: new certificates without a restart, and certificates of workers."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from tests.server.connections.raw import Wire, place_of, request, status_of
from tests.support.running import run
from tests.support.waiting import until
from windlass.assembly.backend import ServerOptions
from windlass.assembly.server import running_services
from windlass.client.gateway import HttpGateway, WorkerToken
from windlass.client.settings import OwnCertificate, own_certificate, trust_for
from windlass.client.transport import ServerError, Transport
from windlass.clock import RealSecrets
from windlass.domain.access.http_limits import HttpLimits
from windlass.domain.config import Config
from windlass.domain.values.errors import InvalidInput
from windlass.messages.sync import EnrolRequest, SyncRequest
from windlass.server.app import start_serving
from windlass.server.connections.tls import TlsFiles, load_context
from windlass.server.serve import Listen, Serving, address_of, bind
from windlass.server.services import ServerServices


class Files(NamedTuple):
    """An authority and the files of a server."""

    ca: trustme.CA
    authority: Path
    certificate: Path
    key: Path

    def issue(self, name: str = "127.0.0.1") -> None:
        """Replaces the server's certificate and key, each at once."""
        issued = self.ca.issue_cert(name)
        for path, blob in ((self.key, issued.private_key_pem), (self.certificate, None)):
            text = blob.bytes() if blob else b"".join(c.bytes() for c in issued.cert_chain_pems)
            fresh = path.with_suffix(".new")
            fresh.write_bytes(text)
            fresh.rename(path)

    def own(self, folder: Path, name: str) -> OwnCertificate:
        """A worker's certificate for this name."""
        return _own(self.ca, folder, name)


def _own(ca: trustme.CA, folder: Path, name: str) -> OwnCertificate:
    issued = ca.issue_cert(name)
    own = OwnCertificate(folder / f"{name}.pem", folder / f"{name}.key")
    own.certificate.write_bytes(b"".join(c.bytes() for c in issued.cert_chain_pems))
    own.key.write_bytes(issued.private_key_pem.bytes())
    return own


@pytest.fixture
def files(tmp_path: Path) -> Files:
    ca = trustme.CA()
    made = Files(ca, tmp_path / "ca.pem", tmp_path / "server.pem", tmp_path / "server.key")
    ca.cert_pem.write_to_path(made.authority)
    made.issue()
    return made


class Secured(NamedTuple):
    """A server over TLS in this loop."""

    services: ServerServices
    serving: Serving
    address: str


@asynccontextmanager
async def secured(
    files: Files, client_ca: Path | None = None, limits: HttpLimits | None = None
) -> AsyncIterator[Secured]:
    tls = TlsFiles(files.certificate, files.key, client_ca)
    listen = Listen(tls=tls)
    bound = bind(listen)
    config = Config(http=limits or HttpLimits())
    async with running_services(ServerOptions("memory:", "memory:", config)) as services:
        serving = start_serving(services, listen, bound)
        try:
            yield Secured(services, serving, address_of(listen, bound))
        finally:
            await serving.stop()


async def _wire(address: str, trust: ssl.SSLContext) -> Wire:
    return Wire(*await asyncio.open_connection(*place_of(address), ssl=trust))


def _serial(wire: Wire) -> str:
    return str(wire.writer.get_extra_info("peercert")["serialNumber"])


def test_a_new_certificate_is_used_without_a_restart_and_open_connections_stay(
    files: Files,
) -> None:
    trust = trust_for("https:", files.authority)

    async def scenario() -> None:
        async with secured(files) as server:
            old = await _wire(server.address, trust)
            files.issue()

            async def is_new() -> bool:
                wire = await _wire(server.address, trust)
                try:
                    return _serial(wire) != _serial(old)
                finally:
                    wire.close()

            await until("the file's change is noticed", is_new, 60)
            await old.send(request())
            answer = await old.answer()
            assert status_of(answer) == 200
            assert b"strict-transport-security: max-age=31536000" in answer.lower()
            old.close()

    run(scenario())


def test_a_certificate_of_no_use_leaves_the_old_one_in_place(files: Files) -> None:
    trust = trust_for("https:", files.authority)

    async def scenario() -> None:
        async with secured(files) as server:
            files.certificate.write_text("nonsense")
            server.serving.reload_certificate()
            wire = await _wire(server.address, trust)
            await wire.send(request())
            assert status_of(await wire.answer()) == 200
            before = _serial(wire)
            wire.close()
            files.issue()
            server.serving.reload_certificate()  # as on SIGHUP
            wire = await _wire(server.address, trust)
            assert _serial(wire) != before
            wire.close()

    run(scenario())


def test_older_versions_of_tls_are_refused(files: Files) -> None:
    context = load_context(TlsFiles(files.certificate, files.key))
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2
    assert trust_for("https:", files.authority).minimum_version >= ssl.TLSVersion.TLSv1_2


def test_a_handshake_that_stays_half_open_is_counted_and_ended(files: Files) -> None:
    trust = trust_for("https:", files.authority)

    async def scenario() -> None:
        limits = HttpLimits(header_timeout_ms=300, connections_per_caller=40)
        async with secured(files, limits=limits) as server:
            opened = [
                Wire(*await asyncio.open_connection(*place_of(server.address))) for _ in range(60)
            ]
            for wire in opened[::2]:
                await wire.send(b"\x16\x03\x01")  # the first bytes of a ClientHello
            assert server.serving.connections <= 40
            honest = await _wire(server.address, trust)
            await honest.send(request())
            assert status_of(await honest.answer()) == 200
            honest.close()
            for wire in opened:
                assert await wire.rest() == b""
                wire.close()

            async def gone() -> bool:
                return server.serving.connections == 0

            await until("all of them are forgotten", gone, 60)

    run(scenario())


def test_a_worker_needs_a_certificate_in_its_own_name(files: Files, tmp_path: Path) -> None:
    async def enrol(server: Secured, name: str, own: OwnCertificate | None) -> HttpGateway:
        code, _ = await server.services.access.create_code(60_000)
        trust = trust_for(server.address, files.authority, own)
        transport = Transport(server.address, trust=trust)
        gateway = HttpGateway(transport, WorkerToken(RealSecrets().secret))
        try:
            await gateway.enrol(EnrolRequest(name=name, code=code))
        except BaseException:
            await gateway.close()
            raise
        return gateway

    async def scenario() -> None:
        mine, other = files.own(tmp_path, "w1"), files.own(tmp_path, "w2")
        async with secured(files, client_ca=files.authority) as server:
            for own in (None, other):
                with pytest.raises(ServerError, match="certificate in the worker's name") as error:
                    await enrol(server, "w1", own)
                assert error.value.status == 403
            gateway = await enrol(server, "w1", mine)
            token = gateway._transport.token
            request = SyncRequest(incarnation=1, seq=1)
            await gateway.sync(1, request)
            await gateway.close()
            # A stolen token is worth nothing without the certificate.
            for own in (None, other):
                trust = trust_for(server.address, files.authority, own)
                thief = HttpGateway(
                    Transport(server.address, token, trust=trust),
                    WorkerToken(RealSecrets().secret),
                )
                with pytest.raises(ServerError, match="certificate in the worker's name"):
                    await thief.sync(1, request)
                await thief.close()

    run(scenario())


def test_a_certificate_of_a_strange_authority_is_no_certificate(
    files: Files, tmp_path: Path
) -> None:
    strange = _own(trustme.CA(), tmp_path, "w1")

    async def answered(server: Secured, own: OwnCertificate) -> int:
        wire = await _wire(server.address, trust_for("https:", files.authority, own))
        try:
            await wire.send(request())
            return status_of(await wire.answer())
        finally:
            wire.close()

    async def scenario() -> None:
        async with secured(files, client_ca=files.authority) as server:
            with pytest.raises((ssl.SSLError, ConnectionError, asyncio.IncompleteReadError)):
                await answered(server, strange)
            assert await answered(server, files.own(tmp_path, "w2")) == 200

    run(scenario())


def test_a_workers_certificate_and_key_need_each_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("WINDLASS_CLIENT_CERT", "WINDLASS_CLIENT_KEY"):
        monkeypatch.delenv(name, raising=False)
    assert own_certificate(None, None) is None
    with pytest.raises(InvalidInput, match="client_key"):
        own_certificate(tmp_path / "w.pem", None)
    monkeypatch.setenv("WINDLASS_CLIENT_KEY", os.fspath(tmp_path / "w.key"))
    found = own_certificate(tmp_path / "w.pem", None)
    assert found == OwnCertificate(tmp_path / "w.pem", tmp_path / "w.key")
    with pytest.raises(InvalidInput, match="client_cert"):
        trust_for("https://localhost", None, found)
