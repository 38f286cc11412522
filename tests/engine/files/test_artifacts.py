"""Artifacts and names: visible from the accepted attempt, looked up when a job is assigned."""

import hashlib
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.filing import Desk, holder_of, one
from tests.engine.support.rig import MINUTE, Rig
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.engine.files.artifacts import upload_key
from windlass.messages.sync import Assignment

LOOKUP = {"$lookup": "env/bookworm"}


async def built(rig: Rig, desk: Desk, data: bytes, **fields: Any) -> tuple[int, str]:
    """A completed job that left the artifact `image.tar`; the job and the digest."""
    agent = await rig.agent(f"builder-{len(data)}")
    number = await rig.submit(**fields)
    (job,) = await agent.take()
    digest = await desk.leave(holder_of(agent, job), "image.tar", data)
    await agent.finish(job)
    return number, digest


def args_of(job: Assignment) -> Any:
    return msgspec.json.decode(job.spec)["args"]


async def take_soon(rig: Rig, agent: Agent) -> Assignment:
    await rig.advance(6 * MINUTE)
    await rig.cleanup()
    (job,) = await agent.take()
    return job


async def test_artifacts_are_visible_once_their_attempt_is_accepted(rig: Rig) -> None:
    desk = Desk(rig)
    agent = await rig.agent()
    number = await rig.submit(retry_on=("execution",), retries=1)
    (job,) = await agent.take()
    await desk.leave(holder_of(agent, job), "a.txt", b"first")
    await desk.leave(holder_of(agent, job), "only-first.txt", b"x")
    assert await desk.files.artifacts(number) == []
    await agent.fail(job)
    job = await take_soon(rig, agent)
    await desk.leave(holder_of(agent, job), "a.txt", b"wrong")
    await desk.leave(holder_of(agent, job), "a.txt", b"second")
    assert await desk.files.artifacts(number) == []
    with pytest.raises(NotFound):
        await desk.files.open_artifact(number, "a.txt")
    await agent.finish(job)
    assert [(row.name, row.size) for row in await desk.files.artifacts(number)] == [("a.txt", 6)]
    assert await desk.fetch(number, "a.txt") == b"second"
    with pytest.raises(NotFound):
        await desk.files.artifacts(99)


async def test_what_is_not_what_was_declared_is_refused(rig: Rig) -> None:
    desk = Desk(rig)
    agent = await rig.agent()
    await rig.submit()
    (job,) = await agent.take()
    digest = hashlib.sha256(b"declared").hexdigest()
    with pytest.raises(InvalidInput, match="sha256"):
        await desk.files.store_artifact(
            holder_of(agent, job), "a", one(b"another"), digest, None, "text/plain"
        )
    for name in ("", "x" * 300, "a\nb"):
        with pytest.raises(InvalidInput, match="name"):
            await desk.leave(holder_of(agent, job), name, b"x")
    assert [info async for info in desk.blobs.list("")] == []
    assert (await rig.snapshot()).artifacts == ()


async def test_an_upload_that_went_straight_to_the_blobs_is_adopted(rig: Rig) -> None:
    desk = Desk(rig)
    agent = await rig.agent()
    number = await rig.submit()
    (job,) = await agent.take()
    holder = holder_of(agent, job)
    assert await desk.files.presign_artifact(holder, "a") is None  # Memory has no addresses.
    await desk.blobs.put(upload_key(job.job, job.attempt, "a"), b"sent")
    digest = hashlib.sha256(b"sent").hexdigest()
    row = await desk.files.adopt_artifact(holder, "a", digest, 4, "")
    assert (row.size, row.content_type) == (4, "application/octet-stream")
    await agent.finish(job)
    assert await desk.fetch(number, "a") == b"sent"


async def test_files_of_this_machine_are_kept_and_fetched(rig: Rig, tmp_path: Path) -> None:
    desk = Desk(rig)
    agent = await rig.agent()
    number = await rig.submit()
    (job,) = await agent.take()
    source, target = tmp_path / "source", tmp_path / "target"
    source.write_bytes(b"x" * 300_000)
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    await desk.files.put_artifact(holder_of(agent, job), "a", source, digest, "text/plain")
    await agent.finish(job)
    await rig.submit(after=[number])
    (job,) = await agent.take()
    holder = holder_of(agent, job)
    await desk.files.get_artifact(holder, number, "a", target)
    assert target.read_bytes() == source.read_bytes()
    with pytest.raises(NotFound):
        await desk.files.get_artifact(holder, number, "b", tmp_path / "nothing")
    assert not (tmp_path / "nothing").exists()


async def test_a_name_stands_for_an_artifact_of_an_accepted_attempt(rig: Rig) -> None:
    desk = Desk(rig)
    number, digest = await built(rig, desk, b"image", namespace="team")
    row = await desk.files.set_name("env/bookworm", number, "image.tar")
    assert row[:5] == ("team", "env/bookworm", number, "image.tar", digest)
    assert (await rig.snapshot()).names == (row,)
    open_job = await rig.submit()
    for job, artifact in ((number, "other"), (open_job, "image.tar"), (99, "image.tar")):
        with pytest.raises(NotFound):
            await desk.files.set_name("env/bookworm", job, artifact)
    with pytest.raises(InvalidInput):
        await desk.files.set_name("", number, "image.tar")


async def test_a_lookup_is_resolved_when_the_job_is_assigned(rig: Rig) -> None:
    desk = Desk(rig)
    number, digest = await built(rig, desk, b"image")
    await desk.files.set_name("env/bookworm", number, "image.tar")
    agent = await rig.agent()
    await rig.submit(args={"inputs": [{"artifact": LOOKUP}], "other": {"$lookup": 1}})
    (job,) = await agent.take()
    told = {"name": "env/bookworm", "job": number, "artifact": "image.tar", "sha256": digest}
    assert args_of(job) == {"inputs": [{"artifact": told}], "other": {"$lookup": 1}}
    view = await rig.store.read(lambda tx: tx.views.job(job.job))
    assert view is not None
    assert view.dynamic is not None
    assert msgspec.json.decode(view.dynamic.body) == {"env/bookworm": told}
    assert msgspec.json.decode(view.spec)["args"]["inputs"] == [{"artifact": LOOKUP}]
    await agent.finish(job)


async def test_a_lost_answer_is_sent_again_as_it_was(rig: Rig) -> None:
    desk = Desk(rig)
    number, _ = await built(rig, desk, b"image")
    await desk.files.set_name("env/bookworm", number, "image.tar")
    agent = await rig.agent()
    await rig.submit(args=LOOKUP)
    await agent.engine.sync(agent.id, agent.request(want=1))  # The answer is lost.
    newer, _ = await built(rig, desk, b"newer image")
    await desk.files.set_name("env/bookworm", newer, "image.tar")
    reply = await agent.sync(want=1)
    assert [args_of(job)["job"] for job in reply.jobs] == [number]


async def test_a_retry_looks_anew(rig: Rig) -> None:
    desk = Desk(rig)
    number, _ = await built(rig, desk, b"image")
    await desk.files.set_name("env/bookworm", number, "image.tar")
    agent = await rig.agent()
    await rig.submit(args=LOOKUP, retry_on=("execution",), retries=1)
    (job,) = await agent.take()
    assert args_of(job)["job"] == number
    newer, _ = await built(rig, desk, b"newer image")
    await desk.files.set_name("env/bookworm", newer, "image.tar")
    await agent.fail(job)
    job = await take_soon(rig, agent)
    assert args_of(job)["job"] == newer


@pytest.mark.parametrize("prefetch", [False, True])
async def test_a_name_that_stands_for_nothing_has_the_job_rejected(
    rig: Rig, prefetch: bool
) -> None:
    agent = await rig.agent()
    number = await rig.submit(args=[LOOKUP])
    other = await rig.submit()
    reply = await agent.sync(want=2, prefetch=prefetch)
    assert [job.job for job in reply.jobs] == [other]
    assert await rig.engine.jobs.wait_ended(number, 30_000)
    record = await rig.record(number)
    assert await rig.state(number) == "rejected"
    assert record.failure == 7  # configuration
    assert "env/bookworm" in (record.reason or "")
    assert (await rig.snapshot()).dynamic == ()


async def test_names_of_another_namespace_are_not_found(rig: Rig) -> None:
    desk = Desk(rig)
    number, _ = await built(rig, desk, b"image", namespace="theirs")
    await desk.files.set_name("env/bookworm", number, "image.tar")
    agent = await rig.agent()
    mine = await rig.submit(args=LOOKUP, namespace="mine")
    assert (await agent.sync(want=1)).jobs == ()
    assert await rig.engine.jobs.wait_ended(mine, 30_000)
    assert await rig.state(mine) == "rejected"


async def test_files_of_the_jobs_before_are_found_by_their_names(rig: Rig) -> None:
    desk = Desk(rig)
    agent = await rig.agent()
    lookup = {"$lookup": "@parts/build/out/image.tar"}
    done = await rig.submit_all(
        {"name": "parts"},
        {"name": "parts/build"},
        {"name": "use", "args": lookup, "after": ("parts", "parts/build")},
        workflow="w",
    )
    (other, build) = await agent.take(want=2)
    await desk.leave(holder_of(agent, other), "build/out/image.tar", b"the longer name wins")
    await agent.finish(other)
    digest = await desk.leave(holder_of(agent, build), "out/image.tar", b"image")
    await agent.finish(build)
    (use,) = await agent.take()
    assert args_of(use) == {
        "name": lookup["$lookup"], "job": done.ids[1], "artifact": "out/image.tar",
        "sha256": digest,
    }  # fmt: skip


async def test_the_file_of_the_job_that_took_the_place_of_another_is_used(rig: Rig) -> None:
    desk = Desk(rig)
    agent = await rig.agent()
    done = await rig.submit_all(
        {"name": "build"},
        {"name": "use", "args": {"$lookup": "@build/a"}, "after": ("build",)},
        workflow="w",
    )
    (build,) = await agent.take()
    await desk.leave(holder_of(agent, build), "a", b"bad")
    await agent.fail(build)
    await rig.engine.settled()  # until then it is busy with those that wait for it
    again = await rig.engine.jobs.retry(done.ids[0], "me")
    (build,) = await agent.take()
    assert build.job == again.id
    digest = await desk.leave(holder_of(agent, build), "a", b"good")
    await agent.finish(build)
    (use,) = await agent.take()
    assert (args_of(use)["job"], args_of(use)["sha256"]) == (again.id, digest)


async def test_a_file_that_no_job_before_has_left_has_the_job_rejected(rig: Rig) -> None:
    desk = Desk(rig)
    stranger, _ = await built(rig, desk, b"image", name="stranger")
    agent = await rig.agent()
    before = await rig.submit(name="before", retry_on=("execution",), retries=1)
    (job,) = await agent.take()
    await desk.leave(holder_of(agent, job), "image.tar", b"of an attempt that failed")
    await agent.fail(job)
    await agent.finish(await take_soon(rig, agent))
    for lookup in ("@before/image.tar", "@stranger/image.tar"):
        number = await rig.submit(args={"$lookup": lookup}, after=(before,))
        assert (await agent.sync(want=1)).jobs == ()
        assert await rig.engine.jobs.wait_ended(number, 30_000)
        assert await rig.state(number) == "rejected"
        assert lookup in ((await rig.record(number)).reason or "")
    assert await rig.state(stranger) == "completed"
