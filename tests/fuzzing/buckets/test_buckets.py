"""The bucket protocol, on a directory and on a real S3 server."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from aiohttp import web

from tests.fuzzing.support.http_server import serving
from tests.fuzzing.support.rig import KINDS_OF_BUCKETS, Rig, Scripted, rigs
from tests.support.running import run
from windlass.blobs.faults import from_bucket
from windlass.domain.values.errors import Conflict, InvalidInput, StoreUnavailable
from windlass_fuzz.buckets.bucket import Bucket, ConcurrentWrite, PreconditionFailed, Stored
from windlass_fuzz.buckets.directory import DirectoryBucket
from windlass_fuzz.buckets.dry_run import DryRunBucket
from windlass_fuzz.buckets.layout import state_key
from windlass_fuzz.buckets.probe import probe, sweep_probes
from windlass_fuzz.buckets.s3 import S3Bucket
from windlass_fuzz.state.open import open_bucket

DAY_MS = 86_400_000


@pytest.fixture(params=KINDS_OF_BUCKETS)
def rig(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    yield from rigs(request, tmp_path, request.param)


def test_a_write_holds_only_while_nothing_changed(rig: Rig) -> None:
    async def work(bucket: Bucket) -> None:
        first = await bucket.put_if("a/b.json", b"1", expected=None)
        with pytest.raises(PreconditionFailed):
            await bucket.put_if("a/b.json", b"2", expected=None)
        second = await bucket.put_if("a/b.json", b"2", expected=first.etag)
        with pytest.raises(PreconditionFailed):
            await bucket.put_if("a/b.json", b"3", expected=first.etag)
        stored = await bucket.get("a/b.json")
        assert stored is not None
        assert (stored.body, stored.etag) == (b"2", second.etag)

    rig.run(work(rig.bucket))


def test_a_write_to_what_was_removed_is_refused(rig: Rig) -> None:
    async def work(bucket: Bucket) -> None:
        first = await bucket.put_if("a.json", b"1", expected=None)
        await bucket.delete(["a.json"])
        assert await bucket.get("a.json") is None
        with pytest.raises(PreconditionFailed):
            await bucket.put_if("a.json", b"2", expected=first.etag)

    rig.run(work(rig.bucket))


def test_attributes_come_back_with_the_body_they_were_written_with(rig: Rig) -> None:
    async def work(bucket: Bucket) -> None:
        first = await bucket.put_if(
            "a.json", b"[]", expected=None, attributes={"windlass-seq": "1"}
        )
        await bucket.put_if("a.json", b"[ ]", expected=first.etag, attributes={"windlass-seq": "2"})
        stored = await bucket.get("a.json")
        assert stored is not None
        attributes = {name.lower(): value for name, value in stored.attributes.items()}
        assert attributes["windlass-seq"] == "2"

    rig.run(work(rig.bucket))


def test_equal_bodies_have_equal_etags(rig: Rig) -> None:
    """This is why a version needs a sequence number in its body."""

    async def work(bucket: Bucket) -> None:
        first = await bucket.put_if("a.json", b"A", expected=None)
        other = await bucket.put_if("a.json", b"B", expected=first.etag)
        again = await bucket.put_if("a.json", b"A", expected=other.etag)
        assert again.etag == first.etag

    rig.run(work(rig.bucket))


def test_files_go_there_and_back(rig: Rig, tmp_path: Path) -> None:
    there, back = tmp_path / "there", tmp_path / "back"
    there.write_bytes(bytes(range(256)) * 1_200)

    async def work(bucket: Bucket) -> None:
        await bucket.put("solvers/toy/builds/production/c1.tar.gz", there)
        assert await bucket.exists("solvers/toy/builds/production/c1.tar.gz")
        assert await bucket.download("solvers/toy/builds/production/c1.tar.gz", back)
        assert not await bucket.download("solvers/toy/nothing", tmp_path / "nothing")

    rig.run(work(rig.bucket))
    assert back.read_bytes() == there.read_bytes()
    assert not (tmp_path / "nothing").exists()


def test_a_folder_is_listed_in_order(rig: Rig) -> None:
    async def work(bucket: Bucket) -> list[str]:
        for key in ("x/b", "x/a/c", "y/d"):
            await bucket.put(key, b"1")
        return [found.key async for found in bucket.list("x")]

    assert rig.run(work(rig.bucket)) == ["x/a/c", "x/b"]


def test_both_keep_their_conditions(rig: Rig) -> None:
    async def work() -> list[str]:
        await probe(rig.bucket, "toy", rig.runtime.nonce)
        return [found.key async for found in rig.bucket.list("solvers")]

    assert rig.run(work()) == []


class Careless(DirectoryBucket):
    """A server that ignores conditions."""

    async def put_if(
        self,
        key: str,
        body: bytes,
        *,
        expected: str | None,
        attributes: Mapping[str, str] | None = None,
    ) -> Stored:
        await self.put(key, body)
        stored = await self.get(key)
        assert stored is not None
        return stored


def test_a_server_that_ignores_conditions_is_refused(tmp_path: Path) -> None:
    rig = Rig(Careless(tmp_path))
    with pytest.raises(Conflict, match="If-None-Match") as refused:
        rig.run(probe(rig.bucket, "toy", rig.runtime.nonce))
    assert refused.value.code == "conditions_ignored"
    rig.close()


def test_a_server_that_refuses_conditions_is_named_and_bad_luck_is_not(tmp_path: Path) -> None:
    rig = Rig(DirectoryBucket(tmp_path))
    rig.run(
        probe(
            Scripted(rig.bucket, ConcurrentWrite("409"), None, ConcurrentWrite("409")),
            "toy",
            rig.runtime.nonce,
        )
    )
    always = Scripted(rig.bucket, *[PreconditionFailed("412")] * 9)
    with pytest.raises(Conflict, match="conditional writes"):
        rig.run(probe(always, "toy", rig.runtime.nonce))
    rig.close()


def test_a_dry_run_reads_what_is_there_and_writes_nothing(rig: Rig) -> None:
    async def work() -> None:
        made = await rig.bucket.put_if("a.json", b"1", expected=None)
        dry = DryRunBucket(rig.bucket)
        assert await dry.get("a.json") == await rig.bucket.get("a.json")
        await dry.put_if("a.json", b"2", expected=made.etag)
        changed = await dry.get("a.json")
        assert changed is not None
        assert changed.body == b"2"
        kept = await rig.bucket.get("a.json")
        assert kept is not None
        assert kept.body == b"1"

    rig.run(work())


def test_a_directory_removes_old_builds_itself(tmp_path: Path) -> None:
    rig = Rig(DirectoryBucket(tmp_path))
    rig.upload("old", "new")
    now_ms = 100 * DAY_MS
    left = tmp_path / ".windlass" / "tmp" / "old-left-by-a-crash"
    left.write_text("")
    for path in (left, *tmp_path.rglob("*.tar.gz")):
        days = 8 if path.name.startswith("old") else 6
        os.utime(path, ns=((now_ms - days * DAY_MS) * 1_000_000,) * 2)
    assert rig.run(rig.bucket.delete_expired("solvers/toy/builds", 7 * DAY_MS, now_ms)) == 2
    assert not rig.run(rig.pipeline.has_build("old", ("production",)))
    assert rig.run(rig.pipeline.has_build("new"))
    assert not left.exists()
    rig.close()


def test_attributes_fit_the_body_after_a_crash_between_their_two_files(tmp_path: Path) -> None:
    rig = Rig(DirectoryBucket(tmp_path))

    async def work() -> None:
        first = await rig.bucket.put_if("a", b"1", expected=None, attributes={"seq": "1"})
        await rig.bucket.put_if("a", b"2", expected=first.etag, attributes={"seq": "2"})
        (tmp_path / "a").write_bytes(b"1")  # as if the second body had never been put in place
        stored = await rig.bucket.get("a")
        assert stored is not None
        assert stored.attributes == {"seq": "1"}

    rig.run(work())
    rig.close()


def test_an_address_that_is_none_is_refused() -> None:
    for url in ("http://bucket", "s3://", ""):
        with pytest.raises(InvalidInput, match="bucket"):
            open_bucket(url)


def test_missing_keys_are_named() -> None:
    said = "Generic S3 error: Error performing PUT http://169.254.169.254/latest/api/token"
    assert "expected keys in AWS_ACCESS_KEY_ID" in str(from_bucket(OSError(said), "s3://x"))
    assert "nobody home" in str(from_bucket(OSError("nobody home"), "s3://x"))


@pytest.mark.parametrize("name", ["Fuzzing", "a", "with_underscore", "x..y", "-x-"])
def test_a_name_that_s3_does_not_allow_is_refused_at_once(name: str) -> None:
    with pytest.raises(InvalidInput, match="name of an S3 bucket"):
        open_bucket(f"s3://{name}/prefix")


def test_a_bucket_that_does_not_exist_is_called_missing() -> None:
    """The test server makes buckets on demand, so this one answers as S3 does."""
    body = b"<Error><Code>NoSuchBucket</Code><Message>none</Message></Error>"

    async def handle(_: web.Request) -> web.StreamResponse:
        return web.Response(status=404, body=body, content_type="application/xml")

    async def work() -> None:
        async with serving(handle) as address:
            keys = {"access_key_id": "a", "secret_access_key": "b", "region": "us-east-1"}
            bucket = S3Bucket("never-made", endpoint=address, **keys)
            with pytest.raises(StoreUnavailable, match="does not exist; correct its name"):
                await probe(bucket, "toy", lambda: "nonce")

    run(work())


def test_probes_of_killed_runs_are_swept(tmp_path: Path) -> None:
    bucket = DirectoryBucket(tmp_path / "bucket")
    keys = [state_key("toy", name) for name in ("probe-one", "probe-two", "state.json")]
    for key in keys:
        run(bucket.put(key, b"1"))
    old = tmp_path / "bucket" / keys[0]
    os.utime(old, (1, 1))
    now_ms = int((tmp_path / "bucket" / keys[1]).stat().st_mtime * 1000)
    assert run(sweep_probes(bucket, "toy", now_ms)) == 1
    assert [run(bucket.exists(key)) for key in keys] == [False, True, True]
