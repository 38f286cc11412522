"""Uploads stay while a job has them, or was sent them a short time ago."""

import hashlib
from collections.abc import AsyncIterator
from typing import Any

import pytest

from tests.engine.history.test_retention import DAY, complete, retain
from tests.engine.support.filing import Desk
from tests.engine.support.rig import Rig
from windlass.domain.config import Config
from windlass.domain.rows.files import UploadRow
from windlass.domain.values.errors import InvalidInput
from windlass.engine.files.artifacts import artifact_key

HOUR = DAY // 24


async def _chunks(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def sent(desk: Desk, data: bytes) -> str:
    """Uploads a file; its digest."""
    digest = hashlib.sha256(data).hexdigest()
    await desk.files.store_upload(
        UploadRow("default", digest, len(data), "", "me", 0), _chunks(data)
    )
    return digest


def needing(digest: str) -> list[Any]:
    return [{"$file": {"sha256": digest}}]


async def held(rig: Rig, desk: Desk, digest: str) -> tuple[bool, bool]:
    """Returns whether the row and the file of an upload exist."""
    rows = await rig.store.read(lambda tx: tx.files.uploads(None))
    blobs = [info.key async for info in desk.blobs.list("artifacts")]
    return digest in [row.sha256 for row in rows], artifact_key(digest) in blobs


async def test_uploads_that_no_job_has_are_removed(rig: Rig) -> None:
    await rig.restart(
        Config(job_retention_ms=3 * DAY, upload_retention_ms=DAY, blob_retention_ms=1)
    )
    desk = Desk(rig)
    used, unused = await sent(desk, b"used"), await sent(desk, b"unused")
    number = await rig.submit(args=needing(used))
    await rig.advance(DAY + HOUR)
    await retain(rig, desk)
    assert await held(rig, desk, used) == (True, True)
    assert (await held(rig, desk, unused))[0] is False
    await complete(rig, number)
    await rig.advance(2 * DAY)
    await rig.submit(args=needing(used))  # a job of today may still use it
    await rig.advance(2 * DAY)
    await retain(rig, desk)
    assert await held(rig, desk, used) == (True, True)
    with pytest.raises(InvalidInput, match="files uploaded to namespace default"):
        await rig.submit(args=needing(unused))


async def test_a_retry_and_a_repeated_workflow_have_the_same_uploads(rig: Rig) -> None:
    desk = Desk(rig)
    agent = await rig.agent()
    digest = await sent(desk, b"data")
    done = await rig.submit_all({"args": needing(digest)}, workflow="w")
    await agent.fail(await agent.take_one())
    await rig.engine.settled()
    again = await rig.engine.jobs.retry(done.ids[0], "me")
    await agent.finish(await agent.take_one())
    await rig.engine.settled()
    await rig.engine.workflows.retry(done.known_workflow, failed=False)
    third = await agent.take_one()
    numbers = [done.ids[0], again.id, third.job]
    rows = await rig.store.read(lambda tx: tx.files.artifacts(numbers))
    found = [(row.attempt, row.sha256) for job in numbers for row in rows[job]]
    assert found == [(0, digest)] * 3
    await agent.finish(third)
