"""Corpora from .tar archives and https servers: used within limits, hostile ones refused."""

import gzip
import io
import shutil
import ssl
import subprocess
import tarfile
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trustme
from aiohttp import web

from tests.fuzzing.seeds.test_seeds import MIB, contents, fetch, zipped
from tests.support.running import run
from windlass.clock import RealChance, RealClock
from windlass_fuzz.config.seed_settings import SeedSettings
from windlass_fuzz.seeds.importer import SeedImporter, Seeds

needs_zstd = pytest.mark.skipif(shutil.which("zstd") is None, reason="zstd is missing")


def tarred(files: dict[str, bytes], **fields: Any) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            for field, value in fields.items():
                setattr(entry, field, value)
            archive.addfile(entry, io.BytesIO(data))
    return packed.getvalue()


def with_zstd(data: bytes) -> bytes:
    return subprocess.run(["zstd", "-qc"], input=data, capture_output=True, check=True).stdout


@pytest.mark.parametrize(
    ("ending", "pack"),
    [
        (".tar", bytes),
        (".tar.gz", gzip.compress),
        (".tgz", gzip.compress),
        pytest.param(".tar.zst", with_zstd, marks=needs_zstd),
    ],
)
def test_tar_archives_are_used(tmp_path: Path, ending: str, pack: Any) -> None:
    files = {"corpus/one": b"1", "two": b"2", "three": b"2", "large": b"x" * 100}
    place = tmp_path / f"backup{ending}"
    place.write_bytes(pack(tarred(files)))
    found = fetch(tmp_path, corpora=(str(place),), largest="99")
    assert (contents(found), found.problems) == ([b"1", b"2"], [])
    assert {path.name for path in tmp_path.iterdir()} == {"work", "sources", place.name}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (tarred({"../../up": b"1"}), "leads out"),
        (tarred({"/etc/cron.d/x": b"1"}), "leads out"),
        (tarred({"link": b""}, type=tarfile.SYMTYPE, linkname="/etc/passwd"), "is a link"),
        (tarred({"link": b""}, type=tarfile.LNKTYPE, linkname="/etc/passwd"), "is a link"),
        (tarred({"device": b""}, type=tarfile.CHRTYPE), "not a plain file"),
        (tarred({"pipe": b""}, type=tarfile.FIFOTYPE), "not a plain file"),
        (tarred({str(n): bytes([n]) for n in range(20)}), "more than 10 inputs"),
        (tarred({str(n): bytes([n]) * 900 for n in range(9)}), "bytes"),
        (tarred({f"d{n}": b"" for n in range(9_000)}, type=tarfile.DIRTYPE), "10 inputs"),
        (tarred({"large": b"0" * (4 * MIB)}), "allow"),
        (tarred({"one": b"1"})[:700], "cannot read"),
        (b"not an archive", "cannot read"),
        (b"", "cannot read"),
    ],
    ids=range(13),
)
def test_hostile_tar_archives_are_refused(tmp_path: Path, content: bytes, why: str) -> None:
    (tmp_path / "hostile.tar.gz").write_bytes(gzip.compress(content))
    found = fetch(
        tmp_path, corpora=(str(tmp_path / "hostile.tar.gz"),), inputs=10, largest="1KiB",
        size="4KiB" if why == "bytes" else "64KiB",
    )  # fmt: skip
    assert found.inputs == []
    assert why in found.problems[0]
    assert {path.name for path in tmp_path.iterdir()} == {"work", "sources", "hostile.tar.gz"}
    assert list((tmp_path / "work" / "seeds").iterdir()) == [], "half of it is not kept"


def with_long_name(size: int) -> bytes:
    """An archive whose first header says that the next name has this many bytes."""
    header = tarfile.TarInfo("pax")
    header.type, header.size = tarfile.XHDTYPE, size
    return header.tobuf() + b"0" * size


@pytest.mark.parametrize("ending", [".tar.gz", pytest.param(".tar.zst", marks=needs_zstd)])
@pytest.mark.parametrize("content", [tarred({"b": b"0" * (64 * MIB)}), with_long_name(64 * MIB)])
def test_a_bomb_takes_neither_memory_nor_disk(tmp_path: Path, ending: str, content: bytes) -> None:
    bomb = gzip.compress(content, 1) if ending == ".tar.gz" else with_zstd(content)
    assert len(bomb) < MIB
    place = tmp_path / f"bomb{ending}"
    place.write_bytes(bomb)
    tracemalloc.start()
    try:
        found = fetch(tmp_path, corpora=(str(place),), largest="1KiB", size="2MiB", inputs=100)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found.inputs == []
    assert most < 16 * MIB
    assert not list(tmp_path.rglob("*unpacked*"))


def test_a_generator_that_fills_the_disk_is_stopped(tmp_path: Path) -> None:
    many = 'n=0; while :; do n=$((n+1)); echo $n > "$1/$n"; done'
    large = 'while :; do head -c 100000 /dev/zero > "$1/$((n+=1))"; done'
    huge = 'head -c 10000000 /dev/zero > "$1/huge" || exit 3'
    deep = 'while :; do mkdir -p "$1/a$((n+=1))"; head -c 9000 /dev/zero > "$1/a$n/x"; done'
    refused = "it writes more than 100 inputs or"
    for script, why in ((many, refused), (large, refused), (huge, "code 3"), (deep, refused)):
        command = ("sh", "-c", script, "sh", "{output}")
        found = fetch(tmp_path, generate=command, size="1MiB", inputs=100)
        assert found.inputs == []
        assert why in found.problems[0]
        assert not list((tmp_path / "work" / "seeds").glob("*/*"))
        written = sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file())
        assert written < MIB


class Corpus:
    """An https server; `answers` has what it says by path."""

    def __init__(self) -> None:
        self.answers: dict[str, web.Response] = {}
        self.asked: list[tuple[str, str]] = []
        self.address = ""

    async def handle(self, request: web.Request) -> web.StreamResponse:
        known = request.headers.get("If-None-Match", "")
        self.asked.append((request.path, known))
        if request.path == "/unannounced.zip":
            unannounced = web.StreamResponse()
            await unannounced.prepare(request)
            await unannounced.write(b"0" * (2 * MIB))
            return unannounced
        given = self.answers.get(request.path, web.Response(status=404))
        if known and known == given.headers.get("ETag"):
            return web.Response(status=304)
        return web.Response(status=given.status, body=given.body, headers=given.headers)


@asynccontextmanager
async def corpus_server(folder: Path, patched: pytest.MonkeyPatch) -> AsyncIterator[Corpus]:
    """A server that this test trusts, and nobody else."""
    authority = trustme.CA()
    authority.cert_pem.write_to_path(str(folder / "authority.pem"))
    patched.setenv("SSL_CERT_FILE", str(folder / "authority.pem"))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1", "localhost").configure_cert(context)
    corpus = Corpus()
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", corpus.handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    corpus.address = f"https://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield corpus
    finally:
        await runner.cleanup()


async def fetch_from(folder: Path, **settings: Any) -> Seeds:
    sources = folder / "sources"
    sources.mkdir(exist_ok=True)
    return await SeedImporter(
        SeedSettings(**settings), folder / "work", sources, sources, 256 * MIB, RealClock(),
        RealChance(),
    ).fetch()  # fmt: skip


def test_archives_and_dictionaries_come_from_https_and_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with corpus_server(tmp_path, monkeypatch) as server:
            version = {"ETag": '"one"'}
            server.answers = {
                "/public.zip": web.Response(body=zipped({"a": b"1"}), headers=version),
                "/moved.tar.gz": web.Response(status=302, headers={"Location": "/backup.tar.gz"}),
                "/backup.tar.gz": web.Response(body=gzip.compress(tarred({"b": b"2"}))),
                "/words.dict": web.Response(body=b'"word"\n'),
            }
            named = ("public.zip?generation=1", "moved.tar.gz")
            corpora = tuple(f"{server.address}/{name}" for name in named)
            given = {"corpora": corpora, "dictionaries": (f"{server.address}/words.dict",)}
            found = await fetch_from(tmp_path, **given)
            assert (contents(found), found.problems) == ([b"1", b"2"], [])
            assert found.dictionary is not None
            assert found.dictionary.read_bytes() == b'"word"\n'
            again = await fetch_from(tmp_path, **given)
            assert contents(again) == [b"1", b"2"]
            assert [known for path, known in server.asked if path == "/public.zip"] == [
                "", '"one"',
            ]  # fmt: skip

    run(scenario())


@pytest.mark.parametrize(
    ("name", "location", "why"),
    [
        ("/unannounced.zip", "", "larger than"),
        ("/large.zip", "", "larger than"),
        ("/missing.zip", "", "answered 404"),
        ("/page.html", "", "expected a folder or an archive"),
        ("/broken.zip", "", "not a .zip"),
        ("/to.zip", "http://127.0.0.1/x.zip", "away from https"),
        ("/to.zip", "file:///etc/passwd", "not a valid URL"),
        ("/to.zip", "https://169.254.169.254/latest.zip", "not public"),
        ("/to.zip", "https://10.0.0.1/x.zip", "not public"),
        ("/to.zip", "https://[::1]/x.zip", "not public"),
        ("/to.zip", "https://localhost/x.zip", "not public"),
        ("/to.zip", "https://user:password@example.org/x.zip", "not a valid URL"),
        ("/to.zip", "/to.zip", "redirects"),
    ],
)
def test_what_a_server_says_is_bounded_and_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, location: str, why: str
) -> None:
    async def scenario() -> None:
        async with corpus_server(tmp_path, monkeypatch) as server:
            moved = web.Response(status=302, headers={"Location": location})
            server.answers = {
                "/large.zip": web.Response(body=b"0" * (2 * MIB)),
                "/page.html": web.Response(body=b"<html>"),
                "/broken.zip": web.Response(body=b"<html>"),
                "/to.zip": moved,
            }
            place = f"{server.address}{name}"
            found = await fetch_from(tmp_path, corpora=(place,), size="1MiB")
            assert found.inputs == []
            (problem,) = found.problems
            assert why in problem

    run(scenario())


def test_a_server_that_nobody_vouches_for_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with corpus_server(tmp_path, monkeypatch) as server:
            server.answers = {"/public.zip": web.Response(body=zipped({"a": b"1"}))}
            monkeypatch.delenv("SSL_CERT_FILE")
            found = await fetch_from(tmp_path, corpora=(f"{server.address}/public.zip",))
            assert found.inputs == []
            assert "certificate" in found.problems[0].lower()

    run(scenario())
