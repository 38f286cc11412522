"""A bucket on S3 that cannot be used: what was tried, what went wrong, and what to do."""

import socket
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from aiohttp import web

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.http_server import serving
from tests.fuzzing.support.scripted_solver import World
from tests.support.running import run
from windlass.blobs.faults import from_bucket
from windlass.domain.values.errors import StoreUnavailable
from windlass_fuzz.buckets.s3 import S3Bucket

KEYS = {
    "AWS_ACCESS_KEY_ID": "made-up", "AWS_SECRET_ACCESS_KEY": "made-up", "AWS_REGION": "eu-west-1",
}  # fmt: skip
ONCE = {"max_retries": 0, "retry_timeout": timedelta(seconds=60)}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)


@pytest.fixture
def closed() -> Iterator[str]:
    """The address of a port that is taken, and at which nothing listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


async def complaint(endpoint: str, part: str = "get") -> str:
    bucket = S3Bucket("buck", "some/prefix", endpoint=endpoint, retry_config=ONCE)
    asking = bucket.get("secret-key") if part == "get" else anext(bucket.list("secret-key"))
    with pytest.raises(StoreUnavailable) as raised:
        await asking
    return str(raised.value)


def test_a_port_without_a_server(closed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    said = run(complaint(closed))
    assert said.startswith(f"cannot use s3://buck/some/prefix: GET to {closed} failed")
    assert "nothing is listening there; check the network, AWS_REGION" in said
    monkeypatch.setenv("AWS_ENDPOINT_URL", closed)
    assert "check AWS_ENDPOINT_URL, and that the server is running" in run(complaint(closed))
    assert "Debug" not in said
    assert "Generic S3 error" not in said
    assert "secret-key" not in said


def test_a_host_without_a_name() -> None:
    said = run(complaint("http://no-such-host.invalid:9000"))
    assert (
        "GET to http://no-such-host.invalid:9000 failed: its host name cannot be resolved" in said
    )


def test_a_server_without_tls() -> None:
    async def scenario() -> str:
        async def answer(_: web.Request) -> web.Response:
            return web.Response()

        async with serving(answer) as address:
            return await complaint(address.replace("http:", "https:"))

    assert "it does not speak TLS" in run(scenario())


@pytest.mark.parametrize(
    ("status", "code", "part", "words"),
    [
        (
            403,
            "AccessDenied",
            "get",
            "answered 403 Forbidden (AccessDenied Go away); check AWS_ACC",
        ),
        (403, "AccessDenied", "list", "answered 403 Forbidden (AccessDenied Go away); check AWS_A"),
        (404, "NoSuchBucket", "list", "the bucket does not exist; correct its name"),
        (400, "Odd", "get", "the server answered 400 Bad Request (Odd Go away)"),
    ],
)
def test_a_server_that_refuses(status: int, code: str, part: str, words: str) -> None:
    body = f"<Error><Code>{code}</Code><Message>Go away</Message></Error>"

    async def scenario() -> str:
        async def answer(_: web.Request) -> web.Response:
            return web.Response(status=status, text=body)

        async with serving(answer) as address:
            return await complaint(address, part)

    said = run(scenario())
    assert words in said
    assert "secret-key" not in said


def test_a_password_in_an_address_is_not_repeated() -> None:
    text = (
        "Generic S3 error: Error performing GET http://user:pass@host:9/b/k?X-Sig=abc in 2s, after "
        "3 retries, max_retries: 3, retry_timeout: 9s  - HTTP error: error sending request"
    )
    said = str(from_bucket(OSError(text), "s3://b"))
    assert "GET to http://host:9 failed (4 times): the connection failed" in said
    assert "pass" not in said
    assert "abc" not in said


@pytest.mark.parametrize("command", ["status", "manager", "init", "findings"])
def test_commands_say_what_to_do(tmp_path: Path, closed: str, command: str) -> None:
    world = World(tmp_path)
    world.commit("one")
    commands = Commands(world, AWS_ENDPOINT_URL=closed, WINDLASS_FUZZ_BUCKET="s3://buck/x")
    code, _, complained = commands.run(command, "scripted")
    said = " ".join(complained.split())
    assert code != 0
    assert closed in said
    assert "check AWS_ENDPOINT_URL, and that the server is running" in said
    assert "Traceback" not in said


def test_listing_findings_writes_nothing(tmp_path: Path) -> None:
    world = World(tmp_path)
    nowhere = tmp_path / "no-bucket"
    commands = Commands(world, WINDLASS_FUZZ_BUCKET=str(nowhere))
    assert "no findings" in "".join(map(str, commands.run("findings", "list", "scripted")))
    assert not nowhere.exists()
