"""Suspended jobs: they hold nothing, and continue once, by time, by a signal or by an answer."""

import asyncio

import pytest

from tests.engine.steps.test_stored_steps import holder
from tests.engine.support.agent import Agent
from tests.engine.support.rig import HOUR, MINUTE, Rig
from windlass.domain.config import Config
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.workflow_state import WorkflowState
from windlass.domain.rows.steps import FOREVER, SignalRow, StepRow, StepState
from windlass.domain.values.errors import Conflict, InvalidInput, NotFound, TooManyRequests
from windlass.domain.values.quantities import format_moment
from windlass.engine import steps as engine_steps
from windlass.engine.history.retention import trim_signals
from windlass.engine.verify.check import verify
from windlass.messages.sync import Assignment

DEFAULT = "default"
PENDING, DONE, TIMED_OUT = StepState


async def suspend(rig: Rig, agent: Agent, key: str = "w", wait_ms: int | None = None) -> Assignment:
    """Takes a job whose function waits for the signal `go`."""
    taken = await agent.take_one()
    asked = await rig.engine.steps.wait_for(holder(agent, taken), key, "go", wait_ms)
    assert asked.state == PENDING
    await agent.finish(taken, "suspended")
    return taken


async def again(rig: Rig, agent: Agent, wait_ms: int | None = None, key: str = "w") -> StepRow:
    """Runs the job again, up to its wait."""
    taken = await agent.take_one()
    return await rig.engine.steps.wait_for(holder(agent, taken), key, "go", wait_ms)


async def test_a_suspended_job_holds_no_slot_and_counts_as_no_failure(rig: Rig) -> None:
    job = await rig.submit(concurrency={"key": "k", "max": 1})
    other = await rig.submit(concurrency={"key": "k", "max": 1})
    agent = await rig.agent(slots=1)
    await suspend(rig, agent)
    assert await rig.state(job) == "suspended"
    assert (await agent.take_one()).job == other
    record = await rig.record(job)
    assert (record.facts.failed, record.facts.lost, record.facts.returned) == (0, 0, 0)
    snapshot = await rig.snapshot()
    (attempt,) = snapshot.attempts
    assert (attempt.failure, attempt.message) == (0, None)
    assert [row.at for row in snapshot.due] == [FOREVER]


async def test_sleep_ends_by_time_alone(rig: Rig) -> None:
    job = await rig.submit()
    agent, steps = await rig.agent(), rig.engine.steps
    taken = await agent.take_one()
    assert (await steps.sleep(holder(agent, taken), "s", HOUR)).state == PENDING
    await agent.finish(taken, "suspended")
    await rig.advance(HOUR - 1)
    await rig.engine.due_jobs.move()
    assert await agent.take() == ()
    await rig.advance(1)
    await rig.engine.due_jobs.move()
    taken = await agent.take_one()
    assert (await steps.sleep(holder(agent, taken), "s", HOUR)).state == DONE
    await agent.finish(taken)
    assert [move[1] for move in await rig.moves(job)][-5:] == [
        "suspended", "queued", "assigned", "running", "completed",
    ]  # fmt: skip


async def test_a_signal_continues_all_who_wait_for_it_in_its_namespace_once(rig: Rig) -> None:
    agent = await rig.agent()
    jobs = []
    for namespace in (DEFAULT, DEFAULT, "theirs"):
        jobs.append(await rig.submit(namespace=namespace))
        await suspend(rig, agent)
    sent = await rig.engine.steps.send(DEFAULT, "go", {"n": 1}, "k", "someone")
    assert (sent.applied, sent.told) == (True, 2)
    repeated = await rig.engine.steps.send(DEFAULT, "go", {"n": 1}, "k", "someone")
    assert (repeated.applied, repeated.signal.id, repeated.told) == (False, sent.signal.id, 0)
    assert await rig.states(*jobs) == ["queued", "queued", "suspended"]
    for _ in range(2):
        got = await again(rig, agent)
        assert (got.state, got.value, got.actor) == (DONE, b'{"n":1}', "someone")
    assert await agent.take() == ()
    assert all(
        [(m := await rig.moves(j)).count(("suspended", "queued")) == 1 and m for j in jobs[:2]]
    )


@pytest.mark.parametrize("wait_ms", [None, HOUR])
async def test_a_signal_reaches_a_job_that_was_blocked_again_while_it_waited(
    rig: Rig, wait_ms: int | None
) -> None:
    made = await rig.submit_all({"name": "first"}, {"after_any": ("first",)})
    agent = await rig.agent()
    await agent.finish(await agent.take_one(), "failed")
    await rig.engine.settled()
    await suspend(rig, agent, wait_ms=wait_ms)
    await rig.engine.jobs.retry(made.ids[0], actor="ann")
    await rig.engine.settled()
    assert await rig.state(made.ids[1]) == "blocked"
    await rig.engine.steps.send(DEFAULT, "go", 1, "k", None)
    await agent.finish(await agent.take_one())
    await rig.engine.settled()
    assert await rig.state(made.ids[1]) == "queued"
    assert (await again(rig, agent, wait_ms)).value == b"1"


async def test_the_order_of_sending_and_waiting_does_not_matter(rig: Rig) -> None:
    steps = rig.engine.steps
    await steps.send(DEFAULT, "go", "too early", "0", None)
    await rig.advance(1)
    await rig.submit()
    await steps.send(DEFAULT, "go", 1, "1", None)
    await steps.send(DEFAULT, "go", 2, "2", None)
    agent = await rig.agent()
    taken = holder(agent, await agent.take_one())
    values = [(await steps.wait_for(taken, f"w{n}", "go", HOUR)).value for n in (1, 2)]
    assert values == [b"1", b"2"]
    assert (await steps.wait_for(taken, "w3", "go", HOUR)).state == PENDING
    # Asked again, each says the same.
    assert (await steps.wait_for(taken, "w1", "go", HOUR)).value == b"1"


async def test_a_signal_between_the_question_and_the_suspension_is_not_lost(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    taken = await agent.take_one()
    await rig.engine.steps.wait_for(holder(agent, taken), "w", "go", None)
    sent = await rig.engine.steps.send(DEFAULT, "go", 7, "k", None)
    assert sent.told == 1
    assert await rig.state(job) == "running"
    await agent.finish(taken, "suspended")
    assert await rig.state(job) == "queued"
    assert (await again(rig, agent)).value == b"7"


@pytest.mark.parametrize(("late_ms", "state"), [(0, DONE), (1, TIMED_OUT)])
async def test_a_signal_at_the_last_moment_counts_and_a_later_one_does_not(
    rig: Rig, late_ms: int, state: StepState
) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await suspend(rig, agent, wait_ms=MINUTE)
    await rig.advance(MINUTE)
    if not late_ms:
        await rig.engine.steps.send(DEFAULT, "go", 1, "k", None)
        await rig.engine.due_jobs.move()
    else:
        await rig.advance(late_ms)
        await rig.engine.due_jobs.move()
        await rig.engine.steps.send(DEFAULT, "go", 1, "k", None)
    assert (await rig.moves(job)).count(("suspended", "queued")) == 1
    await rig.advance(HOUR)
    assert (await again(rig, agent, MINUTE)).state == state


async def test_a_timeout_and_a_signal_at_once_continue_the_job_once(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await suspend(rig, agent, wait_ms=MINUTE)
    await rig.advance(MINUTE)
    await asyncio.gather(
        rig.engine.due_jobs.move(), rig.engine.steps.send(DEFAULT, "go", 1, "k", None)
    )
    assert (await rig.moves(job)).count(("suspended", "queued")) == 1
    assert (await again(rig, agent, MINUTE)).state == DONE
    assert await agent.take() == ()


async def test_canceling_ends_a_suspended_job_at_once(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await suspend(rig, agent)
    await rig.engine.jobs.cancel([job])
    assert await rig.state(job) == "canceled"
    assert (await rig.engine.steps.send(DEFAULT, "go", 1, "k", None)).told == 0
    assert await rig.state(job) == "canceled"
    assert await agent.take() == ()


async def test_an_attempt_told_to_stop_is_not_suspended(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    taken = await agent.take_one()
    await rig.engine.steps.wait_for(holder(agent, taken), "w", "go", None)
    await rig.engine.jobs.cancel([job])
    await agent.finish(taken, "suspended")
    assert await rig.state(job) == "canceled"


async def test_a_worker_lost_between_question_and_suspension_asks_again(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent("old")
    taken = await agent.take_one()
    first = await rig.engine.steps.wait_for(holder(agent, taken), "w", "go", HOUR)
    await rig.pass_time(5 * MINUTE)
    await rig.advance(MINUTE)
    new = await rig.agent("new")
    # A signal in between ends the wait, and does not disturb the backoff.
    second = await rig.engine.steps.wait_for(holder(new, await new.take_one()), "w", "go", HOUR)
    assert (second.until, second.attempt) == (first.until, 2)
    assert (await rig.record(job)).facts.lost == 1


async def test_a_signal_leaves_a_job_that_backs_off_where_it_is(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    taken = await agent.take_one()
    await rig.engine.steps.wait_for(holder(agent, taken), "w", "go", HOUR)
    await agent.fail(taken, FailureClass.NETWORK)
    await rig.engine.steps.send(DEFAULT, "go", 1, "k", None)
    assert await rig.state(job) == "retrying"
    await rig.advance(MINUTE)
    assert (await again(rig, agent)).state == DONE


async def test_a_suspended_job_survives_a_restart_of_the_server(rig: Rig) -> None:
    job = await rig.submit()
    agent = await rig.agent()
    await suspend(rig, agent, wait_ms=HOUR)
    await rig.restart()
    assert await rig.state(job) == "suspended"
    await rig.advance(HOUR)
    await rig.scheduling()
    agent = await rig.agent(takeover=True)
    assert (await again(rig, agent, HOUR)).state == TIMED_OUT


async def test_two_servers_send_and_wait_over_one_store(rig: Rig) -> None:
    if rig.kind == "sqlite":
        return
    job = await rig.submit()
    agent = await rig.agent()
    await suspend(rig, agent)
    other = await rig.another_engine()
    calls = [engine.steps.send(DEFAULT, "go", 1, "k", None) for engine in (rig.engine, other)]
    sent = await asyncio.gather(*calls)
    assert sorted(one.applied for one in sent) == [False, True]
    assert (await rig.moves(job)).count(("suspended", "queued")) == 1
    assert (await again(rig, agent)).value == b"1"


async def test_a_signal_reaches_many_jobs_also_after_a_crash(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engine_steps, "TOLD", 2)
    agent = await rig.agent()
    jobs = [await rig.submit(args=n) for n in range(5)]
    for _ in jobs:
        await suspend(rig, agent)
    signal = SignalRow(0, DEFAULT, "go", "k", 0, 1, None, b"1")
    await rig.engine.run(lambda work: engine_steps.send(work, signal))
    await rig.engine.run(engine_steps.deliver_open)  # and then the server dies
    assert (await rig.states(*jobs)).count("suspended") == 3
    await rig.scheduling()
    assert set(await rig.states(*jobs)) == {"queued"}
    assert [row.is_open for row in (await rig.snapshot()).signals] == [0]


async def test_a_second_signal_while_the_first_is_told_goes_to_the_next_wait(rig: Rig) -> None:
    agent, steps = await rig.agent(), rig.engine.steps
    await rig.submit()
    await suspend(rig, agent, "w1")
    await steps.send(DEFAULT, "go", 1, "a", None)
    await steps.send(DEFAULT, "go", 2, "b", None)
    taken = holder(agent, await agent.take_one())
    values = [(await steps.wait_for(taken, key, "go", None)).value for key in ("w1", "w2")]
    assert values == [b"1", b"2"]


async def test_waiting_takes_no_run_time_and_finish_before_binds(rig: Rig) -> None:
    late = format_moment(rig.now + HOUR)
    job = await rig.submit(timeout="1m", finish_before=late)
    agent = await rig.agent()
    await suspend(rig, agent)
    await rig.advance(HOUR - 1)
    await rig.cleanup()
    assert await rig.state(job) == "suspended"
    await rig.advance(1)
    await rig.engine.due_jobs.move()
    assert await rig.state(job) == "failed"
    assert ((await rig.record(job)).reason or "").startswith("deadline")


async def test_start_before_is_met_by_the_first_start(rig: Rig) -> None:
    job = await rig.submit(start_before=format_moment(rig.now + MINUTE))
    agent = await rig.agent()
    await suspend(rig, agent)
    await rig.advance(MINUTE)
    await rig.engine.due_jobs.move()
    assert await rig.state(job) == "suspended"


async def test_too_many_signals_are_refused(rig: Rig) -> None:
    await rig.restart(Config(signals_limit=1))
    steps = rig.engine.steps
    await steps.send(DEFAULT, "a", 1, "k", None)
    await steps.send("theirs", "a", 1, "k", None)
    assert not (await steps.send(DEFAULT, "a", 1, "k", None)).applied
    with pytest.raises(TooManyRequests, match="keeps 1 signals"):
        await steps.send(DEFAULT, "b", 1, "k", None)
    with pytest.raises(InvalidInput, match="printable"):
        await steps.send(DEFAULT, "", 1, "k", None)


async def test_the_first_answer_that_fits_counts(rig: Rig) -> None:
    job = await rig.submit()
    agent, steps = await rig.agent(), rig.engine.steps
    taken = await agent.take_one()
    asked = await steps.ask(holder(agent, taken), "q", "Ship?", {"type": "boolean"}, HOUR)
    assert asked.state == PENDING
    await agent.finish(taken, "suspended")
    found = await rig.store.read(lambda tx: tx.steps.questions(0, 10))
    assert [(row.job, row.key) for row in found] == [(job, "q")]
    with pytest.raises(InvalidInput, match="true or false"):
        await steps.answer(job, "q", "yes", "me")
    with pytest.raises(NotFound):
        await steps.answer(job, "other", True, "me")
    assert await rig.state(job) == "suspended"
    answers = await asyncio.gather(
        *(steps.answer(job, key, True, who) for key, who in (("q", "me"), (None, "you"))),
        return_exceptions=True,
    )
    assert [type(one) for one in answers].count(StepRow) == 1
    with pytest.raises(Conflict, match="answered by"):
        await steps.answer(job, "q", False, "me")
    taken = await agent.take_one()
    got = await steps.ask(holder(agent, taken), "q", "Ship?", {"type": "boolean"}, HOUR)
    assert got.value == b"true"
    assert await rig.store.read(lambda tx: tx.steps.questions(0, 10)) == []


async def test_an_answer_that_comes_too_late_is_refused(rig: Rig) -> None:
    job = await rig.submit()
    agent, steps = await rig.agent(), rig.engine.steps
    taken = await agent.take_one()
    await steps.ask(holder(agent, taken), "q", "Ship?", None, MINUTE)
    await agent.finish(taken, "suspended")
    await rig.advance(MINUTE + 1)
    with pytest.raises(Conflict, match="no longer waiting"):
        await steps.answer(job, "q", 1, None)
    await rig.engine.jobs.cancel([job])
    with pytest.raises(Conflict, match="has ended"):
        await steps.answer(job, "q", 1, None)


async def test_old_signals_are_removed(memory_rig: Rig) -> None:
    rig = memory_rig
    await rig.engine.steps.send(DEFAULT, "go", 1, "a", None)
    await rig.advance(rig.engine.config.signal_retention_ms)
    await rig.engine.steps.send(DEFAULT, "go", 2, "b", None)
    assert await rig.engine.run(trim_signals) == 0
    await rig.advance(1)
    assert await rig.engine.run(trim_signals) == 1
    assert [row.key for row in (await rig.snapshot()).signals] == ["b"]


async def test_a_suspended_job_is_explained(memory_rig: Rig) -> None:
    rig = memory_rig
    agent, steps = await rig.agent(), rig.engine.steps
    since, until = format_moment(rig.now), format_moment(rig.now + HOUR)
    first = await rig.submit()
    await suspend(rig, agent, wait_ms=HOUR)
    sleeper, asker = await rig.submit(), await rig.submit()
    await steps.sleep(holder(agent, taken := await agent.take_one()), "s", HOUR)
    await agent.finish(taken, "suspended")
    await steps.ask(holder(agent, taken := await agent.take_one()), "q", "Ship?", None, None)
    await agent.finish(taken, "suspended")
    told = [await rig.engine.explain.job(job) for job in (first, sleeper, asker)]
    assert [one.summary for one in told] == [
        f"suspended: waits for signal go since {since}, at most until {until}",
        f"suspended: waits for the end of its sleep at {until}",
        f"suspended: waits for an answer to 'Ship?' since {since}",
    ]
    await rig.advance(HOUR // 2)
    spent = await rig.engine.explain.time_spent(first)
    assert "suspended" in {part.cause for part in spent.parts}


async def test_verify_finds_a_suspended_job_that_waits_for_nothing(memory_rig: Rig) -> None:
    rig = memory_rig
    await rig.submit()
    await suspend(rig, await rig.agent())
    assert await verify(rig.store, rig.engine.config) == []
    (step,) = (await rig.snapshot()).steps
    await rig.store.transact(lambda tx: tx.steps.put(step._replace(state=int(DONE))))
    (found,) = await verify(rig.store, rig.engine.config)
    assert (found.invariant, found.message) == ("L3", "is suspended, but waits for nothing")
    await rig.store.transact(lambda tx: tx.steps.put(step))


async def test_a_suspended_job_of_a_workflow_keeps_it_open(rig: Rig) -> None:
    done = await rig.submit_all({}, workflow="w")
    agent = await rig.agent()
    await suspend(rig, agent)
    assert done.workflow is not None
    await rig.watchdog()
    await rig.advance(HOUR)
    await rig.watchdog()
    (flow,) = (await rig.snapshot()).workflows
    assert WorkflowState(flow.state) is WorkflowState.DISPATCHING
    await rig.engine.workflows.cancel(done.workflow)
    assert await rig.state(done.ids[0]) == "canceled"


async def test_a_wait_that_is_no_longer_asked_for_does_not_continue_the_job(rig: Rig) -> None:
    job = await rig.submit()
    agent, steps = await rig.agent(), rig.engine.steps
    first = await agent.take_one()
    await steps.wait_for(holder(agent, first), "old code", "old", MINUTE)
    await agent.fail(first, FailureClass.NETWORK)
    await rig.advance(MINUTE // 2)
    await suspend(rig, agent, wait_ms=HOUR)
    await steps.send(DEFAULT, "old", 1, "k", None)
    assert await rig.state(job) == "suspended"
    await rig.advance(MINUTE)
    await rig.engine.due_jobs.move()
    assert await rig.state(job) == "suspended"
    await steps.send(DEFAULT, "go", 1, "k", None)
    assert await rig.state(job) == "queued"
