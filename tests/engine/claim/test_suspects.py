"""Jobs that lose workers together are kept apart in ever smaller groups; one alone is blamed."""

from collections.abc import Sequence

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, SECOND, Rig
from windlass.domain.config import Config
from windlass.domain.job.forms import Concurrency
from windlass.domain.lifecycle.failures import FailureClass
from windlass.domain.lifecycle.retries import RetryPolicy
from windlass.messages.sync import Assignment, Finished


async def die(rig: Rig, agent: Agent, slots: int = 4) -> None:
    """Let the agent's process die and start again; wait out the backoff."""
    await agent.enrol(slots=slots, takeover=True)
    await rig.advance(5 * MINUTE)


async def take(agent: Agent, want: int = 4) -> list[Assignment]:
    return list(await agent.take(want))


async def ids(agent: Agent, want: int = 4) -> list[int]:
    return [given.job for given in await take(agent, want)]


async def run_until_ended(rig: Rig, agent: Agent, jobs: Sequence[int], killer: int) -> int:
    """Let a worker run what it gets; it dies whenever it holds `killer`. Returns how often."""
    deaths = 0
    for _ in range(40):
        given = await take(agent)
        if killer in [one.job for one in given]:
            deaths += 1
            await die(rig, agent)
            continue
        for one in given:
            await agent.finish(one)
        if all(state in ("completed", "failed") for state in await rig.states(*jobs)):
            break
    return deaths


async def lose_together(rig: Rig, agent: Agent, count: int = 4, times: int = 2) -> list[int]:
    """Let a worker die with these jobs, twice: then half of them may be together."""
    jobs = [await rig.submit(args=n) for n in range(count)]
    for _ in range(times):
        assert await ids(agent, count) == jobs
        await die(rig, agent, slots=count)
    return jobs


async def test_a_job_that_kills_its_worker_takes_no_neighbour_with_it(rig: Rig) -> None:
    agent = await rig.agent(slots=4)
    killer, *others = jobs = [await rig.submit(args=n) for n in range(3)]
    assert 5 <= await run_until_ended(rig, agent, jobs, killer) <= 7
    assert await rig.states(*others) == ["completed", "completed"]
    assert await rig.state(killer) == "failed"
    reason = (await rig.record(killer)).reason or ""
    assert reason.endswith("retries after lost workers exhausted (3 of 3)")
    assert [(await rig.record(job)).facts.lost for job in others] == [0, 0]


async def test_a_worker_that_is_killed_once_costs_its_jobs_no_time(rig: Rig) -> None:
    agent = await rig.agent(slots=20)
    jobs = [await rig.submit(args=n) for n in range(20)]
    assert await ids(agent, 20) == jobs
    await agent.enrol(slots=20, takeover=True)
    assert await ids(agent, 20) == jobs


async def time_taken(rig: Rig, name: str, kill_at: int | None = None) -> int:
    """Lets one worker of 20 slots run 20 jobs of 3 s, and perhaps die; returns how long it took."""
    agent = await rig.agent(name, slots=20)
    for n in range(20):
        await rig.submit(args=n)
    began, ends, completed = rig.now, list[tuple[int, Assignment]](), 0
    while completed < 20:
        if rig.now - began == kill_at:
            await agent.enrol(slots=20, takeover=True)
            ends, kill_at = [], None
        ends += [(rig.now + 3 * SECOND, given) for given in await take(agent, 20 - len(ends))]
        await rig.advance(SECOND)
        for _, given in [one for one in ends if one[0] <= rig.now]:
            await agent.finish(given)
            completed += 1
        ends = [one for one in ends if one[0] > rig.now]
    return rig.now - began


async def test_after_one_kill_the_jobs_take_at_most_twice_as_long(rig: Rig) -> None:
    undisturbed = await time_taken(rig, "calm")
    for kill_at in (0, SECOND, 2 * SECOND):
        assert await time_taken(rig, f"killed-{kill_at}", kill_at) <= 2 * undisturbed


async def test_a_worker_that_is_killed_twice_runs_its_jobs_in_two_halves(rig: Rig) -> None:
    agent = await rig.agent(slots=20)
    jobs = await lose_together(rig, agent, 20)
    given = await take(agent, 20)
    assert [one.job for one in given] == jobs[:10]
    assert await take(agent, 10) == []
    await agent.finish(given[0])
    assert await ids(agent, 11) == jobs[10:11]


async def test_among_twenty_jobs_on_one_worker_only_the_one_that_kills_it_fails(rig: Rig) -> None:
    agent = await rig.agent(slots=20)
    jobs = [await rig.submit(args=n) for n in range(20)]
    killer = jobs[7]
    deaths = 0
    while await rig.state(killer) != "failed":
        given = await take(agent, 20)
        if killer in [one.job for one in given]:
            deaths += 1
            await die(rig, agent, slots=20)
        else:
            for one in given:
                await agent.finish(one)
    assert deaths <= 10
    while given := await take(agent, 20):
        for one in given:
            await agent.finish(one)
    others = [job for job in jobs if job != killer]
    assert set(await rig.states(*others)) == {"completed"}
    assert [(await rig.record(job)).facts.lost for job in others] == [0] * 19


async def test_a_job_that_kills_two_workers_is_quarantined_without_its_neighbours(rig: Rig) -> None:
    agents = [await rig.agent(f"worker-{n}", slots=4) for n in range(2)]
    killer, *others = jobs = [await rig.submit(args=n) for n in range(6)]
    while not all(state in ("completed", "failed") for state in await rig.states(*jobs)):
        for agent in agents:
            given = await take(agent)
            if killer in [one.job for one in given]:
                await die(rig, agent)
                continue
            for one in given:
                await agent.finish(one)
        agents.reverse()
    assert ((await rig.record(killer)).reason or "").endswith(
        "poison: lost 3 attempts on 2 workers"
    )
    assert set(await rig.states(*others)) == {"completed"}


async def test_jobs_lost_together_again_are_retried_a_few_at_a_time(rig: Rig) -> None:
    agent = await rig.agent(slots=4)
    first, second, third, fourth = await lose_together(rig, agent)
    given = await take(agent)
    assert [one.job for one in given] == [first, second]
    assert await take(agent, 2) == []
    await agent.finish(given[0])
    assert await ids(agent, 3) == [third]
    await agent.finish(given[1])
    assert await ids(agent, 3) == [fourth]


async def test_or_on_different_workers(rig: Rig) -> None:
    agent = await rig.agent(slots=4)
    jobs = await lose_together(rig, agent)
    other = await rig.agent("worker-2", slots=4)
    assert await ids(agent) == jobs[:2]
    assert await ids(other) == jobs[2:]


async def test_other_jobs_run_beside_jobs_that_were_lost_with_others(rig: Rig) -> None:
    agent = await rig.agent(slots=4)
    first, second, *_ = await lose_together(rig, agent)
    fresh = await rig.submit()
    assert await ids(agent) == [first, second, fresh]


async def test_a_loss_beside_other_jobs_counts_against_nobody(rig: Rig) -> None:
    agent = await rig.agent(slots=4)
    for job in await lose_together(rig, agent):
        facts = (await rig.record(job)).facts
        assert (facts.lost, facts.returned) == (0, 2)
        lost = [event for event in await rig.events(job) if "restarted" in (event.reason or "")]
        assert (lost[0].reason or "").endswith("other jobs ran there, so none is blamed")
        assert (lost[1].reason or "").endswith("so at most 2 of them are retried on one worker")


async def test_a_job_that_was_alone_is_blamed(rig: Rig) -> None:
    agent = await rig.agent(slots=4)
    job = await rig.submit()
    await agent.take_one()
    await die(rig, agent)
    assert (await rig.record(job)).facts.lost == 1


async def lose_twice(rig: Rig, agent: Agent) -> tuple[int, int]:
    """Make a job a suspect that must be alone, and one that was beside it the last time."""
    first, second = await lose_together(rig, agent, 2, times=1)
    other = await rig.agent("worker-2", slots=1)
    assert await ids(agent, 1) == [first]
    await other.finish(await other.take_one())
    assert await rig.state(second) == "completed"
    fresh = await rig.submit()
    assert await ids(agent) == [fresh]
    await die(rig, agent)
    return first, fresh


async def test_after_a_loss_as_the_only_suspect_a_job_has_its_worker_for_itself(rig: Rig) -> None:
    agent = await rig.agent(slots=4)
    twice, fresh = await lose_twice(rig, agent)
    late = await rig.submit()
    given = await take(agent)
    assert [one.job for one in given] == [twice]
    assert await take(agent) == []
    assert (await rig.engine.explain.worker(agent.id)).summary == (
        "takes no further job: holds a job that runs alone, since it lost several workers before"
    )
    await agent.finish(given[0])
    assert await ids(agent) == [fresh, late]


async def test_a_job_that_must_be_alone_does_not_starve(rig: Rig) -> None:
    agent = await rig.agent(slots=2)
    busy = await rig.submit()
    held = await agent.take_one()
    assert held.job == busy
    other = await rig.agent("worker-3", slots=4)
    twice, fresh = await lose_twice(rig, other)
    await rig.engine.workers.remove(other.id)
    for _ in range(3):  # the second slot stays empty until the first one is
        await rig.submit()
    assert await take(agent, 1) == []
    notes = (await rig.engine.explain.job(twice)).notes
    assert any("worker-1 has been reserved for it" in note for note in notes)
    assert await rig.state(fresh) == "queued"
    await agent.finish(held)
    assert await ids(agent) == [twice]


async def test_explain_says_why_a_suspect_waits(rig: Rig) -> None:
    agent = await rig.agent(slots=4)
    *_, last = jobs = await lose_together(rig, agent)
    assert await ids(agent) == jobs[:2]
    answer = await rig.engine.explain.job(last)
    assert answer.workers[0].needs == (
        "a worker with fewer than 2 jobs that lost their worker beside others"
    )
    assert answer.workers[0].has == "2"
    assert answer.notes[0].endswith("it shares a worker with at most 1 other such job")


async def test_a_silent_worker_makes_suspects_as_a_restarted_one_does(rig: Rig) -> None:
    await rig.end_grace()
    agent = await rig.agent(slots=2)
    jobs = await lose_together(rig, agent, 2, times=1)
    assert await ids(agent) == jobs
    await rig.pass_time(100 * SECOND)
    await rig.advance(MINUTE)
    other = await rig.agent("worker-2", slots=4)
    assert await ids(other) == jobs[:1]


async def test_unstarted_jobs_of_a_restarted_worker_are_no_suspects(rig: Rig) -> None:
    agent = await rig.agent(slots=4)
    job, waits = [await rig.submit(args=n) for n in range(2)]
    await agent.start((await agent.take(2, prefetch=True))[0])
    await die(rig, agent)
    assert (await rig.record(job)).facts.lost == 1
    assert (await rig.record(waits)).facts.returned == 1
    assert sorted([*await ids(agent), *await ids(agent)]) == [job, waits]


async def test_functions_that_lost_their_process_together_are_suspects_too(rig: Rig) -> None:
    agent = await rig.agent(slots=4)
    jobs = [await rig.submit(args=n) for n in range(2)]
    lost = FailureClass.WORKER_LOST.value
    for _ in range(2):
        ends = tuple(
            Finished(one.job, one.attempt, "failed", None, lost, "its process was killed")
            for one in await take(agent)
        )
        assert len(ends) == 2
        await agent.sync(finished=ends)
        await rig.advance(MINUTE)
    assert [(await rig.record(job)).facts.lost for job in jobs] == [0, 0]
    assert await ids(agent) == jobs[:1]


async def test_losses_beside_others_are_bounded_as_well(rig: Rig) -> None:
    await rig.restart(Config(retry=RetryPolicy(max_returned=0)))
    agent = await rig.agent(slots=4)
    first, second = await lose_together(rig, agent, 2, times=1)
    assert await rig.states(first, second) == ["failed", "failed"]
    assert not (await rig.record(first)).facts.flags


async def test_limits_and_resources_hold_for_suspects_too(rig: Rig) -> None:
    metadata = {"system:cpus": 4}
    agent = await rig.agent(slots=4, metadata=metadata)
    limit = Concurrency(key="db", max=2)
    jobs = [await rig.submit(args=n, resources={"cpus": 2}, concurrency=limit) for n in range(2)]
    for _ in range(2):
        assert await ids(agent) == jobs
        await agent.enrol(slots=4, metadata=metadata, takeover=True)
        await rig.advance(MINUTE)
    assert await ids(agent) == jobs[:1]
    assert await ids(agent) == []
