"""Buckets that cannot be used: each message says what is wrong and what to do."""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from aiohttp import web

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.http_server import serving
from tests.fuzzing.support.scripted_solver import World
from tests.support.running import run
from windlass.domain.values.errors import StoreUnavailable
from windlass_fuzz.buckets.directory import DirectoryBucket
from windlass_fuzz.buckets.s3 import S3Bucket
from windlass_fuzz.state.open import directory_of

NOBODY = 65_534
REMEDY = "name another with --bucket, WINDLASS_FUZZ_BUCKET or `bucket` in the solver file"
COMMANDS = (("init",), ("status",), ("manager",), ("findings", "list"))


def refused(world: World, bucket: str, *command: str) -> str:
    """Returns what a command says about a bucket that it cannot use, in one line."""
    code, said, complained = Commands(world).run(*command, "scripted", "--bucket", bucket)
    assert code != 0
    assert not said, "it went on"
    assert "Errno" not in complained
    assert complained.startswith("windlass: "), "one message, not two"
    return " ".join(complained.split())


@pytest.mark.parametrize("command", COMMANDS)
def test_what_is_not_a_directory_is_named_with_the_remedy(
    tmp_path: Path, command: tuple[str, ...]
) -> None:
    world = World(tmp_path)
    world.commit("one")
    (tmp_path / "plain").write_text("mine")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / "circle").symlink_to("circle")
    for bucket, wrong in {
        "plain": "plain is a file, not a directory",
        "plain/below": "plain is a file, not a directory",
        "dangling": "dangling is a symbolic link to nowhere, which leads nowhere",
        "circle/below": "circle is a symbolic link to circle, which leads nowhere",
    }.items():
        said = refused(world, str(tmp_path / bucket), *command)
        assert (
            said == f"windlass: cannot use bucket {tmp_path / bucket}: {tmp_path}/{wrong}; {REMEDY}"
        )
    assert (tmp_path / "plain").read_text() == "mine"
    assert not (tmp_path / "nowhere").exists()


def test_an_empty_option_is_not_the_default_bucket(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("one")
    assert "--bucket is empty; name a bucket" in refused(world, "", "manager")


def test_a_file_address_with_a_host_is_refused(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.commit("one")
    said = refused(world, "file://srv/fuzzing", "manager")
    assert "file://srv/fuzzing names the host srv; write file:///directory" in said
    assert directory_of("file:///srv/fuzzing") == Path("/srv/fuzzing")


@pytest.fixture
def locked() -> Iterator[Path]:
    """A folder in which this user may not write, with the rights of a plain user."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o555)
        if os.geteuid() == 0:
            os.seteuid(NOBODY)
        try:
            yield folder
        finally:
            os.seteuid(os.getuid())
            folder.chmod(0o700)


def test_a_directory_without_permission_says_who_may_change_what(locked: Path) -> None:
    with pytest.raises(StoreUnavailable) as raised:
        DirectoryBucket(locked)
    wanted = f"cannot use bucket {locked}: this user has no permission for {locked}/.windlass;"
    assert str(raised.value) == f"{wanted} change its owner or mode, or {REMEDY}"


def test_a_bucket_that_does_not_exist_is_not_an_empty_one(tmp_path: Path) -> None:
    body = b"<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>"

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=404, body=body, content_type="application/xml")

    async def scenario() -> None:
        async with serving(answer) as address:
            keys = {"access_key_id": "x", "secret_access_key": "x"}
            bucket = S3Bucket("not-there", endpoint=address, region="x", **keys)
            asked = {
                "get": bucket.get("key"),
                "put": bucket.put("key", b"x"),
                "download": bucket.download("key", tmp_path / "x"),
            }
            found = await asyncio.gather(*asked.values(), return_exceptions=True)
        for part, one in zip(asked, found, strict=True):
            assert isinstance(one, StoreUnavailable), part
            assert "bucket s3://not-there does not exist; correct its name" in str(one), part

    run(scenario())
