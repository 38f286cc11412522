"""`{"$result": JOB}`: a job waits for another and gets its result as an argument."""

from functools import partial
from typing import Any

import msgspec
import pytest

from tests.engine.history.test_retention import DAY, complete, job_ids, retain
from tests.engine.support.agent import Agent
from tests.engine.support.rig import Rig
from windlass.domain.config import Config
from windlass.domain.values.errors import InvalidInput
from windlass.engine.sync.results import Results
from windlass.messages.sync import Assignment, Finished


def result(job: int | str) -> dict[str, Any]:
    return {"$result": job}


def args_of(job: Assignment) -> Any:
    return msgspec.json.decode(job.spec)["args"]


async def rejection(rig: Rig, agent: Agent, number: int) -> str:
    """Returns why a job was rejected when it was to be assigned."""
    assert (await agent.sync(want=1)).jobs == ()
    assert await rig.engine.jobs.wait_ended(number, 30_000)
    assert await rig.state(number) == "rejected"
    return (await rig.record(number)).reason or ""


async def test_a_job_waits_for_the_job_whose_result_it_names(rig: Rig) -> None:
    agent = await rig.agent(slots=4)
    first, second = await rig.submit(), await rig.submit()
    args = {"a": result(first), "b": [1, {"c": result(second)}], "d": result(first)}
    number = await rig.submit(args=args)
    assert await rig.state(number) == "blocked"
    one, two = await agent.take(want=2)
    assert await agent.take() == ()
    await agent.finish(one, result={"x": [1]})
    await agent.finish(two)  # without a result
    (job,) = await agent.take()
    assert args_of(job) == {"a": {"x": [1]}, "b": [1, {"c": None}], "d": {"x": [1]}}
    await agent.finish(job)


async def test_jobs_of_one_submission_are_named(rig: Rig) -> None:
    agent = await rig.agent(slots=4)
    old = await rig.submit(name="part")  # another job of that name
    await agent.finish(await agent.take_one(), result="old")
    done = await rig.submit_all(
        {"name": "use", "args": [result("part"), result(old)]}, {"name": "part"}
    )
    (part,) = await agent.take(want=4)
    assert part.job == done.ids[1]
    await agent.finish(part, result="new")
    assert args_of(await agent.take_one()) == ["new", "old"]


async def test_a_literal_is_no_reference(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit()
    await agent.finish(await agent.take_one(), result={"$lookup": "a", "$result": 1})
    literal = {"$literal": {"$result": 99, "$lookup": "b"}}
    await rig.submit(args=[literal, {"$literal": {"$result": result(first)}}])
    inner = {"$literal": {"$result": {"$lookup": "a", "$result": 1}}}
    assert args_of(await agent.take_one()) == [literal, inner]


@pytest.mark.parametrize("bad", [True, None, 1.5, [], {}, "", 0, -1])
async def test_a_reference_names_a_job(memory_rig: Rig, bad: Any) -> None:
    with pytest.raises(InvalidInput, match=r"args"):
        await memory_rig.submit(args=[{"$result": bad}])


async def test_a_job_of_another_namespace_looks_as_if_it_did_not_exist(rig: Rig) -> None:
    agent = await rig.agent()
    secret = await rig.submit(namespace="theirs")
    await agent.finish(await agent.take_one(), result="secret")
    messages = []
    for job in (secret, 10_000):
        with pytest.raises(InvalidInput) as refused:
            await rig.submit(namespace="mine", args=[result(job)])
        messages.append(refused.value.message.replace(str(job), "N"))
    assert messages[0] == messages[1]
    with pytest.raises(InvalidInput, match="the name of a job in this submission"):
        await rig.submit(namespace="mine", args=[result("unknown")])


async def test_a_failed_job_aborts_those_that_need_its_result(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit()
    number = await rig.submit(args=[result(first)])
    await agent.fail(await agent.take_one())
    await rig.engine.settled()
    assert await rig.state(number) == "aborted"


async def test_a_job_without_the_result_that_it_needs_is_rejected(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit(allow_failure=True)
    second = await rig.submit(args=[result(first)])
    third = await rig.submit(args=[result(first)], after_any=(first,))
    await agent.fail(await agent.take_one())
    await rig.engine.settled()
    for number in (second, third):
        why = await rejection(rig, agent, number)
        assert f"job {first}, whose result is an argument, has no result: it is failed" in why


async def test_the_result_of_the_job_that_took_the_place_of_another_is_used(rig: Rig) -> None:
    agent = await rig.agent()
    done = await rig.submit_all({"name": "a"}, {"args": [result("a")]}, workflow="w")
    await agent.fail(await agent.take_one())
    await rig.engine.settled()
    again = await rig.engine.jobs.retry(done.ids[0], "me")
    job = await agent.take_one()
    assert job.job == again.id
    await agent.finish(job, result=7)
    assert args_of(await agent.take_one()) == [7]


async def test_a_repeated_workflow_uses_its_own_results(rig: Rig) -> None:
    agent = await rig.agent()
    done = await rig.submit_all({"name": "a"}, {"args": [result("a")]}, workflow="w")
    await agent.finish(await agent.take_one(), result="first")
    await agent.finish(await agent.take_one())
    await rig.engine.settled()
    await rig.engine.workflows.retry(done.known_workflow, failed=False, actor=None)
    await agent.finish(await agent.take_one(), result="second")
    assert args_of(await agent.take_one()) == ["second"]


async def test_a_lost_answer_with_results_is_sent_again(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit()
    await rig.submit(args=[result(first)])
    await agent.finish(await agent.take_one(), result=7)
    await agent.engine.sync(agent.id, agent.request(want=1))  # The answer is lost.
    reply = await agent.sync(want=1)
    assert [args_of(job) for job in reply.jobs] == [[7]]


async def test_results_beyond_the_limit_are_refused(rig: Rig) -> None:
    await rig.restart(Config(results_limit=10))
    agent = await rig.agent()
    first = await rig.submit()
    number = await rig.submit(args=[result(first)])
    await agent.finish(await agent.take_one(), result="x" * 10)
    assert "12 bytes, the limit is 10" in await rejection(rig, agent, number)


async def test_a_result_stays_while_an_open_job_needs_it(rig: Rig) -> None:
    await rig.restart(Config(job_retention_ms=DAY))
    agent = await rig.agent()
    first = await rig.submit()
    await agent.finish(await agent.take_one(), result=7)
    number = await rig.submit(args=[result(first)], unblock="manual")
    await rig.advance(2 * DAY)
    await retain(rig)
    assert await job_ids(rig) == [first, number]
    await rig.engine.jobs.unblock(number)
    await complete(rig, number)
    await rig.advance(2 * DAY)
    await retain(rig)
    assert await job_ids(rig) == []


async def test_a_thousand_results_make_one_argument(rig: Rig) -> None:
    agent = await rig.agent(slots=1_000)
    jobs: list[dict[str, Any]] = [{"name": f"part-{n}"} for n in range(1_000)]
    await rig.submit_all(*jobs, {"args": [result(job["name"]) for job in jobs]})
    parts = await agent.take(want=1_000)
    assert len(parts) == 1_000
    ends = [Finished(part.job, part.attempt, result=n) for n, part in enumerate(parts)]
    await agent.sync(finished=tuple(ends))
    assert args_of(await agent.take_one()) == list(range(1_000))


async def test_a_result_cannot_name_files_of_other_jobs(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit()
    await rig.submit(args=[result(first)])
    forged = [{"$file": {"job": 999, "artifact": "a"}}, {"$file": 999}]
    await agent.finish(await agent.take_one(), result=forged)
    mine = {"$file": {"job": first, "artifact": "a"}}
    assert args_of(await agent.take_one()) == [[mine, {"$file": {"job": first}}]]


async def test_only_results_that_a_job_waits_for_are_filled_in(rig: Rig) -> None:
    agent = await rig.agent()
    first = await rig.submit()
    await agent.finish(await agent.take_one(), result=7)
    for after, problem in (((first,), None), ((), f"job {first}, whose result is an argument")):
        spec = {"args": [result(first)], "after": after}
        results = await rig.store.read(partial(Results.read, specs=[spec]))
        filled = results.fill(spec, 100)
        assert (filled.problem or "").startswith(problem or "")
        assert filled.values == ({} if problem else {first: 7})
