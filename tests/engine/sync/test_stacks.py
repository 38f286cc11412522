"""Stacks of running functions: asked of the worker that holds the attempt, through any engine."""

import asyncio

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.filing import holder_of
from tests.engine.support.rig import Rig
from windlass.blobs.memory import MemoryBlobs
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.engine.files import stacks as asking
from windlass.engine.files.stacks import Stacks
from windlass.messages.files import StackFrame, StackReport, StackThread
from windlass.messages.sync import Assignment, SyncReply

WAIT_MS = 4_000


def told(request: int, code: str = "x") -> StackReport:
    thread = StackThread("MainThread", (StackFrame("a.py", 1, "f", code),))
    return StackReport(request=request, threads=(thread,))


async def running(rig: Rig) -> tuple[Agent, Assignment]:
    agent = await rig.agent()
    await rig.submit()
    return agent, await agent.take_one()


def waiting(agent: Agent) -> "asyncio.Task[SyncReply]":
    """A sync that waits, with nothing to say."""
    return asyncio.ensure_future(agent.send(agent.request(wait_ms=WAIT_MS)))


async def test_a_waiting_sync_is_answered_at_once_and_the_answer_reaches_the_asker(
    rig: Rig,
) -> None:
    other = await rig.another_engine() if rig.store.shared else rig.engine
    blobs = MemoryBlobs()
    here, there = Stacks(rig.engine, blobs), Stacks(other, blobs)
    agent, job = await running(rig)
    for asked, answering in ((here, here), (there, here)):
        open_sync = waiting(agent)
        await asyncio.sleep(0)  # noqa: TID251 - lets the sync begin
        asker = asyncio.ensure_future(asked.ask(job.job))
        reply = await open_sync
        (wanted,) = reply.stacks
        assert (wanted.job, wanted.attempt) == (job.job, job.attempt)
        await answering.answer(holder_of(agent, job), told(wanted.request))
        found = await asker
        assert found.threads[0].frames[0].code == "x"
        quiet = await agent.send(agent.request())
        assert quiet.stacks == ()  # nobody asks any more
    assert [info.key async for info in blobs.list("stacks")] == []


async def test_only_the_holder_answers_and_only_what_it_was_asked(memory_rig: Rig) -> None:
    rig = memory_rig
    stacks = Stacks(rig.engine, MemoryBlobs())
    agent, job = await running(rig)
    stranger = await rig.agent("stranger")
    await rig.submit()
    other = await agent.take_one()
    asker = asyncio.ensure_future(stacks.ask(job.job))
    (wanted,) = (await agent.send(agent.request(wait_ms=WAIT_MS))).stacks
    await stacks.answer(holder_of(agent, other), told(wanted.request, "of another job"))
    assert (await stranger.send(stranger.request())).stacks == ()
    holder = holder_of(agent, job)
    forged = holder._replace(worker=stranger.id, incarnation=stranger.incarnation)
    with pytest.raises(Conflict, match="not held"):
        await stacks.answer(forged, told(wanted.request, "forged"))
    with pytest.raises(Conflict, match="not held"):
        await stacks.answer(holder._replace(attempt=2), told(wanted.request, "of another"))
    await stacks.answer(holder, told(wanted.request + 1, "not asked for"))
    with pytest.raises(InvalidInput, match="bytes"):
        await stacks.answer(holder, told(wanted.request, "x" * asking.MAX_BYTES))
    await stacks.answer(holder, told(wanted.request))
    assert (await asker).threads[0].frames[0].code == "x"


async def test_a_worker_that_does_not_answer_is_named(
    memory_rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig = memory_rig
    monkeypatch.setattr(asking, "WAIT_S", 0.05)
    stacks = Stacks(rig.engine, MemoryBlobs())
    agent, job = await running(rig)
    with pytest.raises(Conflict, match=f"worker {agent.name} did not answer") as refused:
        await stacks.ask(job.job)
    assert refused.value.code == "no_answer"
    await agent.finish(job)
    with pytest.raises(Conflict, match="not running"):
        await stacks.ask(job.job)


async def test_a_worker_that_cannot_tell_says_why(memory_rig: Rig) -> None:
    rig = memory_rig
    stacks = Stacks(rig.engine, MemoryBlobs())
    agent, job = await running(rig)
    asker = asyncio.ensure_future(stacks.ask(job.job))
    (wanted,) = (await agent.send(agent.request(wait_ms=WAIT_MS))).stacks
    report = StackReport(request=wanted.request, problem="only functions have one")
    await stacks.answer(holder_of(agent, job), report)
    with pytest.raises(Conflict, match="only functions have one"):
        await asker
