"""Server, worker and commands over TLS, with certificates made here."""

import json
import os
import signal
import socket
import ssl
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

import windlass
from tests.cli.program import Program
from tests.support.running import run
from tests.support.waiting import until
from windlass.cli.commands.maintenance.doctor import judge_expiry
from windlass.domain.values.errors import Unreachable


class Secured(NamedTuple):
    """A server over TLS, the authority that vouches for it, and one that does not."""

    program: Program
    address: str
    authority: Path
    stranger: Path
    pid: int
    ca: trustme.CA
    certificate: Path
    key: Path


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "server.pem", folder / "server.key"
    authority, stranger = folder / "ca.pem", folder / "stranger.pem"
    ca = trustme.CA()
    issued = ca.issue_cert("127.0.0.1")
    issued.private_key_pem.write_to_path(key)
    for number, blob in enumerate(issued.cert_chain_pems):
        blob.write_to_path(certificate, append=number > 0)
    for path in (certificate, key):  # room for another one of the same size
        path.write_bytes(path.read_bytes() + b"\n" * 20)
    ca.cert_pem.write_to_path(authority)
    trustme.CA().cert_pem.write_to_path(stranger)
    program = Program(folder / "data")
    place = ("--store", f"sqlite://{folder}/windlass.db", "--blobs", f"file://{folder}/blobs")
    tls = ("--tls-cert", str(certificate), "--tls-key", str(key))
    with program.running("server", *place, "--listen", "127.0.0.1:0", *tls) as process:
        assert process.stdout is not None
        address = process.stdout.readline().split()[-1]
        yield Secured(program, address, authority, stranger, process.pid, ca, certificate, key)
    assert process.returncode == 0


def test_a_worker_and_the_commands_work_over_tls(secured: Secured) -> None:
    assert secured.address.startswith("https://127.0.0.1:")
    trusting = {"WINDLASS_TLS_CA": str(secured.authority)}
    words = ("worker", "--tls-ca", str(secured.authority), "--name", "w1")
    state = ("--state", str(secured.program.data / "w1"))
    with secured.program.running(*words, *state) as worker:
        done = secured.program("run", "--", "echo", "hello", **trusting)
        assert (done.returncode, done.stdout) == (0, "hello\n"), done.stderr
        listed = secured.program.text("workers", "--json", "--tls-ca", str(secured.authority))
        assert '"w1"' in listed
    assert worker.returncode == 0


def test_doctor_says_when_the_certificate_expires(secured: Secured) -> None:
    done = secured.program("doctor", "--json", "--tls-ca", str(secured.authority))
    (found,) = [one for one in json.loads(done.stdout) if one["check"] == "certificate"]
    assert (found["state"], "expires in" in found["detail"]) == ("ok", True)


@pytest.mark.parametrize(
    ("until", "state", "said"),
    [
        ("Jan 31 12:00:00 2026 GMT", "problem", "expired on 2026-01-31"),
        ("Feb  5 12:00:00 2026 GMT", "problem", "expires in 4 days"),
        ("Feb 20 12:00:00 2026 GMT", "note", "expires in 19 days"),
        ("Feb 20 12:00:00 2027 GMT", "ok", "expires in 384 days"),
    ],
)
def test_a_certificate_is_renewed_in_time(until: str, state: str, said: str) -> None:
    now = 1_769_904_000_000  # 2026-02-01
    found = judge_expiry(until, now)
    assert (found.state, said in found.detail) == (state, True), found


def test_a_hangup_reloads_the_certificate_and_ends_nothing(secured: Secured) -> None:
    """Also files that look unchanged: the server compares sizes and times by itself."""
    trust = ssl.create_default_context(cafile=secured.authority)

    def serial() -> str:
        _, _, place = secured.address.partition("//")
        with ssl_connection(place, trust) as connection:
            return str((connection.getpeercert() or {})["serialNumber"])

    before = serial()
    issued = secured.ca.issue_cert("127.0.0.1")
    _replace_unnoticed(secured.key, issued.private_key_pem.bytes())
    chain = b"".join(blob.bytes() for blob in issued.cert_chain_pems)
    _replace_unnoticed(secured.certificate, chain)
    assert serial() == before
    os.kill(secured.pid, signal.SIGHUP)

    async def is_new() -> bool:
        return serial() != before

    run(until("the new certificate is in use", is_new, 60))
    assert secured.program.text("jobs", "--json", "--tls-ca", str(secured.authority))


def _replace_unnoticed(path: Path, content: bytes) -> None:
    """Writes a file whose size and time stay the same."""
    old = path.stat()
    assert len(content) <= old.st_size
    path.write_bytes(content.ljust(old.st_size, b"\n"))
    os.utime(path, ns=(old.st_atime_ns, old.st_mtime_ns))


@contextmanager
def ssl_connection(place: str, trust: ssl.SSLContext) -> Iterator[ssl.SSLSocket]:
    host, _, port = place.partition(":")
    with (
        socket.create_connection((host, int(port)), timeout=10) as plain,
        trust.wrap_socket(plain, server_hostname=host) as connection,
    ):
        yield connection


def test_a_program_trusts_whom_the_environment_names(
    secured: Secured, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = secured.program.data
    monkeypatch.setenv("WINDLASS_TLS_CA", str(secured.authority))
    with windlass.Client(secured.address, data=data) as client:
        assert client.jobs(state="running") == []
    monkeypatch.setenv("WINDLASS_TLS_CA", str(secured.stranger))
    with windlass.Client(secured.address, data=data) as client, pytest.raises(Unreachable):
        client.jobs()


@pytest.mark.parametrize("words", [("jobs",), ("verify",), ("worker", "--name", "w2")])
def test_a_certificate_of_another_authority_is_refused(
    secured: Secured, words: tuple[str, ...]
) -> None:
    for given in ((), ("--tls-ca", str(secured.stranger))):
        done = _refused(secured, *words, *given)
        assert "certificate is not trusted" in done.stderr
        assert "--tls-ca" in done.stderr
        assert "windlass up" not in done.stderr
        assert "Traceback" not in done.stderr


def test_a_certificate_for_another_name_is_refused(secured: Secured) -> None:
    address = secured.address.replace("127.0.0.1", "localhost")
    trusted = ("--tls-ca", str(secured.authority))
    done = _refused(secured, "jobs", "--server", address, *trusted)
    assert "localhost" in done.stderr


def _refused(secured: Secured, *words: str) -> "subprocess.CompletedProcess[str]":
    done = secured.program(*words)
    assert done.returncode == 3, (words, done.stdout, done.stderr)
    return done


def test_files_that_are_no_certificates_are_refused(secured: Secured, tmp_path: Path) -> None:
    program = Program(tmp_path / "data")
    place = ("--store", f"sqlite://{tmp_path}/x.db", "--blobs", f"file://{tmp_path}/blobs")
    nonsense = tmp_path / "nonsense.pem"
    nonsense.write_text("nonsense")
    known = str(secured.authority)
    for words, said in (
        (("server", *place, "--tls-cert", str(nonsense)), "--tls-cert needs --tls-key"),
        (("server", *place, "--tls-cert", str(nonsense), "--tls-key", str(nonsense)), "in PEM"),
        (("server", *place, "--tls-cert", "/nowhere", "--tls-key", known), "a readable file"),
        (("jobs", "--server", "https://127.0.0.1:9", "--tls-ca", str(nonsense)), "--tls-ca"),
        (("jobs", "--server", "https://127.0.0.1:9", "--tls-ca", "/nowhere"), "No such file"),
    ):
        done = program(*words)
        assert (done.returncode, said in done.stderr) == (2, True), (words, done.stderr)
        assert "Traceback" not in done.stderr
