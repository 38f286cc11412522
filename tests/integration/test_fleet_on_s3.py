"""Logs and artifacts in S3, end to end: real server, real worker, real bucket."""

import asyncio
import hashlib
from pathlib import Path
from typing import Any

import httpx

from tests.support.fleet import Fleet
from tests.support.running import run
from tests.support.s3 import S3Server
from windlass.blobs.s3 import S3Blobs
from windlass.client.client import AsyncClient
from windlass.domain.job.job import JobSpec

BYTES = 3_000_000
LIMIT_S = 120


def shell(script: str, **more: Any) -> JobSpec:
    return JobSpec(task="shell", args={"argv": ["sh", "-c", script], **more})


async def play(folder: Path, s3: S3Server) -> None:
    fleet = Fleet(
        folder, f"sqlite://{folder}/windlass.db",
        blobs="s3://fleet/farm", variables=s3.environment(),
    )  # fmt: skip
    try:
        await fleet.start_servers()
        await fleet.start_worker("worker-1")
        async with AsyncClient(fleet.address, fleet.token) as client:
            async with asyncio.timeout(LIMIT_S):
                await exchange(client, fleet, s3)
    except BaseException as error:
        error.add_note(fleet.tails())
        raise
    finally:
        await fleet.stop()


async def exchange(client: AsyncClient, fleet: Fleet, s3: S3Server) -> None:
    """One job makes an artifact, another takes it in; both leave logs."""
    make = f"head -c {BYTES} /dev/zero | tr '\\0' x > big.bin; echo made; env"
    maker = await client.submit(shell(make, artifacts=["*.bin"]))
    done = await maker.wait()
    assert done.state == "completed", done
    log = b"".join([chunk async for chunk in maker.logs()])
    assert log.startswith(b"made\n")
    assert s3.secret_key.encode() not in log
    (artifact,) = done.artifacts
    assert (artifact.name, artifact.size) == ("big.bin", BYTES)
    assert artifact.sha256 == hashlib.sha256(b"x" * BYTES).hexdigest()
    async with httpx.AsyncClient(
        base_url=fleet.address, headers={"Authorization": f"Bearer {fleet.token}"},
        follow_redirects=True, timeout=60,
    ) as http:  # fmt: skip
        reply = await http.get(f"/api/v1/jobs/{maker.id}/artifacts/big.bin")
        assert (reply.status_code, reply.content) == (200, b"x" * BYTES)
        named = {"job": maker.id, "artifact": "big.bin"}
        assert (await http.put("/api/v1/names/big", json=named)).status_code == 200
    taker = await client.submit(
        shell("wc -c < in.bin", inputs=[{"artifact": {"$lookup": "big"}, "path": "in.bin"}])
    )
    assert (await taker.wait()).state == "completed"
    assert b"".join([chunk async for chunk in taker.logs()]).split() == [b"%d" % BYTES]
    await check_bucket(s3, maker.id, artifact.sha256)


async def check_bucket(s3: S3Server, job: int, sha256: str) -> None:
    bucket = S3Blobs("fleet", prefix="farm", **s3.options())
    keys = [info.key async for info in bucket.list("")]
    assert any(sha256 in key for key in keys), keys
    assert any(key.startswith(f"logs/{job}/") for key in keys), keys
    await bucket.close()


def test_a_job_s_log_and_artifact_go_through_a_bucket(tmp_path: Path, s3_server: S3Server) -> None:
    run(play(tmp_path, s3_server))
