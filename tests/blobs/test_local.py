"""A directory as a place for blobs: private, durable, without half files."""

import asyncio
import errno
import os
from pathlib import Path

import pytest

from windlass.blobs.local import LocalBlobs
from windlass.domain.values.errors import InvalidInput, StoreUnavailable


def test_only_the_owner_can_enter(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path / "data" / "blobs")
    asyncio.run(blobs.put("a/b/c", b"x"))
    modes = {path.stat().st_mode & 0o777 for path in (tmp_path / "data").rglob("*")}
    folders = [path for path in (tmp_path / "data").rglob("*") if path.is_dir()]
    assert modes == {0o600, 0o700}
    assert all(path.stat().st_mode & 0o777 == 0o700 for path in folders)
    assert (tmp_path / "data" / "blobs" / "a" / "b" / "c").read_bytes() == b"x"


def test_a_file_and_its_folders_are_on_the_disk_before_the_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    asyncio.run(LocalBlobs(tmp_path).put("a/b/c", b"x"))
    assert Path(synced[0]).parent == tmp_path / "tmp"
    assert {str(tmp_path), str(tmp_path / "a"), str(tmp_path / "a" / "b")} <= set(synced)


def test_what_a_crash_leaves_is_listed_and_can_be_removed(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path)
    (tmp_path / "tmp" / "tmp12345").write_bytes(b"half")

    async def check() -> None:
        assert [info.key async for info in blobs.list("tmp")] == ["tmp/tmp12345"]
        await blobs.delete(["tmp/tmp12345"])
        assert [info.key async for info in blobs.list("")] == []
        await blobs.put("a", b"goes on")

    asyncio.run(check())
    with pytest.raises(InvalidInput, match="outside of tmp/"):
        asyncio.run(blobs.put("tmp/x", b"x"))


def test_a_link_does_not_lead_out(tmp_path: Path) -> None:
    blobs = LocalBlobs(tmp_path / "blobs")
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "file").write_bytes(b"x")
    (tmp_path / "blobs" / "a").symlink_to(tmp_path / "secret")

    async def check() -> list[str]:
        return [info.key async for info in blobs.list("")]

    assert "a/file" not in asyncio.run(check())


def test_a_full_disk_is_told_as_such(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blobs = LocalBlobs(tmp_path)

    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StoreUnavailable, match="is full") as refusal:
        asyncio.run(blobs.put("a/b", b"x"))
    assert refusal.value.code == "disk_full"
    monkeypatch.undo()
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == []
