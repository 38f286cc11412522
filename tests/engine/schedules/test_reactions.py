"""What follows the end of a workflow: once for each run, whatever crashes."""

import hashlib
import hmac
import json
from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import HOUR, MINUTE, SECOND, Rig
from tests.engine.support.timetable import (
    DESCRIPTION,
    JOB,
    NAMESPACE,
    Receiver,
    Timetable,
    receiving,
)
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.workflow_state import Details, WorkflowState
from windlass.domain.rows.events import EventKind
from windlass.domain.schedules import ReactionKind, ReactionState
from windlass.domain.values.errors import InvalidInput
from windlass.domain.webhooks import TRIES
from windlass.engine.submit.submission import WorkflowSpec
from windlass.messages.reactions import CONCEALED, conceal, parse_reactions

SECRET = "open sesame"
LOOPBACK = "127.0.0.0/8"


async def submit(rig: Rig, jobs: int = 1, **reactions: Any) -> int:
    """A workflow with these reactions; its id."""
    spec = WorkflowSpec(name="release", details=Details(submitted_by="ada", **reactions))
    specs = [JobSpec(task="shell", args={"argv": ["true"]}) for _ in range(jobs)]
    return (await rig.engine.submit(specs, spec)).known_workflow


async def end(agent: Agent, outcome: str = "completed") -> None:
    for job in await agent.take(100):
        await agent.finish(job, outcome)  # type: ignore[arg-type]


async def outcomes(table: Timetable) -> list[tuple[str, str, int | None]]:
    """Kind, state and result of each reaction."""
    return [
        (ReactionKind(r.kind).name.lower(), ReactionState(r.state).name.lower(), r.result)
        for r in await table.reaction_rows()
    ]


@pytest.mark.parametrize(
    ("outcome", "expected"),
    [("completed", ["on success", "on end"]), ("failed", ["on failure", "on end"])],
)
async def test_each_end_has_its_own_reactions(rig: Rig, outcome: str, expected: list[str]) -> None:
    table = Timetable(rig)
    for name in ("success", "failure", "end"):
        body = {**DESCRIPTION, "name": f"on {name}"}
        await table.templates.put(NAMESPACE, name, body, "ada")
    await submit(
        rig,
        on_success=[{"submit": "success"}],
        on_failure=[{"submit": "failure"}],
        on_end=[{"submit": "end"}],
    )
    agent = await rig.agent()
    assert await table.react() == 0
    await end(agent, outcome)
    assert await table.react() == 2
    assert await table.react() == 0
    rows = (await rig.snapshot()).workflows
    assert [row.name for row in rows] == ["release", *expected]
    assert await outcomes(table) == [("submit", "done", 2), ("submit", "done", 3)]
    details = await rig.engine.workflows.details(2)
    assert details.submitted_by == "reaction of workflow 1"
    assert details.labels == {"follows": "1"}


async def test_a_canceled_workflow_has_only_an_end(rig: Rig) -> None:
    table = Timetable(rig)
    follow = [{"submit": [JOB]}]
    workflow = await submit(rig, on_success=follow, on_failure=follow, on_end=follow)
    await rig.engine.workflows.cancel(workflow)
    assert await table.react() == 1


async def test_jobs_are_submitted_as_a_workflow_of_their_own(rig: Rig) -> None:
    table = Timetable(rig)
    second = {**JOB, "name": "b", "after": ["a"]}
    await submit(rig, on_end=[{"submit": [{**JOB, "name": "a"}, second]}])
    await end(await rig.agent())
    await table.react()
    _, follow = (await rig.snapshot()).workflows
    assert follow.name == "release, then"
    assert len((await rig.snapshot()).jobs) == 3


async def test_the_intent_is_written_with_the_end_itself(rig: Rig) -> None:
    """So a server that dies right after the end loses nothing, and another goes on."""
    await submit(rig, on_end=[{"submit": [JOB]}])
    await end(await rig.agent())
    await rig.restart()
    table = Timetable(rig)
    assert await outcomes(table) == [("submit", "pending", None)]
    assert await table.react() == 1
    assert len((await rig.snapshot()).workflows) == 2


async def test_a_run_fires_once_and_the_next_run_again(rig: Rig) -> None:
    table = Timetable(rig)
    workflow = await submit(rig, on_failure=[{"submit": [JOB]}])
    agent = await rig.agent()
    await end(agent, "failed")
    await table.react()
    await rig.engine.workflows.retry(workflow, True, "ada")
    await end(agent, "failed")
    await table.react()
    runs = [row.run for row in await table.reaction_rows()]
    assert runs == [1, 2]


async def test_a_follow_up_that_is_refused_says_why(rig: Rig) -> None:
    table = Timetable(rig)
    await submit(rig, on_end=[{"submit": "nothing"}, {"submit": [JOB]}])
    await end(await rig.agent())
    assert await table.react() == 2
    first, second = await table.reaction_rows()
    assert first.state == ReactionState.FAILED
    assert first.message == "template nothing does not exist"
    assert second.state == ReactionState.DONE
    told = [e.reason for e in await rig.events() if e.kind == EventKind.REACTION]
    assert told[0] is not None
    assert told[0].startswith("Workflow 1, run 1: submit on end failed: template")


async def test_two_servers_submit_a_follow_up_once(rig: Rig) -> None:
    tables = [Timetable(rig), Timetable(rig)]
    await submit(rig, on_end=[{"submit": [JOB]}])
    await end(await rig.agent())
    (row,) = await tables[0].reactions.due(False, 10)
    for table in tables * 2:
        await table.reactions.carry_out(row)
    assert len((await rig.snapshot()).workflows) == 2


async def test_failed_jobs_are_tried_again_after_each_delay_and_then_no_more(rig: Rig) -> None:
    table = Timetable(rig)
    workflow = await submit(rig, jobs=2, on_failure=[{"retry": {"delays": ["1m", "1h"]}}])
    agent = await rig.agent()
    good, bad = await agent.take(2)
    await agent.finish(good)
    await agent.finish(bad, "failed")
    for delay in (MINUTE, HOUR):
        await table.react()
        assert await table.workflow(workflow) is WorkflowState.DISPATCHING
        (due,) = (await rig.snapshot()).due
        assert due.at == rig.now + delay
        await rig.advance(delay - 1)
        assert await agent.take(1) == ()
        await rig.advance(1)
        await rig.scheduling()
        await end(agent, "failed")
        assert await table.workflow(workflow) is WorkflowState.FAILED
    await table.react()
    assert await table.workflow(workflow) is WorkflowState.FAILED
    assert [row.message for row in await table.reaction_rows()] == [
        "retried in 1 min", "retried in 1 h", "no retries are left"
    ]  # fmt: skip
    jobs = (await rig.snapshot()).jobs
    assert [job.facts.superseded_by for job in jobs][-1] is None
    assert len(jobs) == 4


async def test_a_retry_that_was_made_before_a_crash_is_not_made_again(rig: Rig) -> None:
    table = Timetable(rig)
    workflow = await submit(rig, on_failure=[{"retry": {"delays": ["1m", "1m"]}}])
    agent = await rig.agent()
    await end(agent, "failed")
    (row,) = await table.reactions.due(False, 10)
    await rig.engine.workflows.retry(workflow, True, "the one that died", rig.now + MINUTE)
    await table.reactions.carry_out(row)
    assert len((await rig.snapshot()).jobs) == 2
    (done,) = await table.reaction_rows()
    assert (done.state, done.message) == (ReactionState.DONE, "it was already reopened")


def is_signed(headers: dict[str, str], body: bytes) -> bool:
    """As a receiver checks it."""
    text = headers["windlass-timestamp"].encode() + b"." + body
    digest = hmac.new(SECRET.encode(), text, hashlib.sha256).hexdigest()
    return headers["windlass-signature"] == f"sha256={digest}"


async def hooked(rig: Rig, receiver: Receiver, **fields: Any) -> tuple[Timetable, int]:
    """A workflow that has ended and calls the receiver."""
    table = Timetable(rig, networks=LOOPBACK)
    hook = {"webhook": {"url": receiver.url, "secret": SECRET}}
    workflow = await submit(rig, on_end=[hook], **fields)
    await end(await rig.agent())
    return table, workflow


async def test_a_webhook_is_signed_and_tells_of_the_end(rig: Rig) -> None:
    async with receiving() as receiver:
        table, workflow = await hooked(rig, receiver, labels={"team": "red"})
        assert await table.send() == 1
        assert await table.send() == 0
        ((headers, body),) = receiver.requests
        assert is_signed(headers, body)
        assert headers["windlass-timestamp"] == str(rig.now // 1000)
        assert headers["windlass-delivery"] == f"{workflow}-1-end-0"
        told = json.loads(body)
        assert told["workflow"]["state"] == "completed"
        assert told["workflow"]["labels"] == {"team": "red"}
        assert told["delivery"] == headers["windlass-delivery"]
        assert await outcomes(table) == [("webhook", "done", 204)]
        await table.courier.close()


async def test_a_webhook_is_sent_again_with_the_same_id_until_it_is_taken(rig: Rig) -> None:
    async with receiving() as receiver:
        table, _ = await hooked(rig, receiver)
        receiver.status = 500
        await table.send()
        (row,) = await table.reaction_rows()
        assert (row.state, row.tries, row.result) == (ReactionState.PENDING, 1, 500)
        assert row.next_at == rig.now + 5 * SECOND
        assert await table.send() == 0
        receiver.status = 200
        await rig.advance(5 * SECOND)
        assert await table.send() == 1
        (first, first_body), (second, second_body) = receiver.requests
        assert first["windlass-delivery"] == second["windlass-delivery"]
        assert first_body == second_body
        assert is_signed(second, second_body)
        assert await outcomes(table) == [("webhook", "done", 200)]
        await table.courier.close()


async def test_a_receiver_that_never_takes_it_is_given_up(memory_rig: Rig) -> None:
    async with receiving() as receiver:
        table, _ = await hooked(memory_rig, receiver)
        receiver.status = 503
        while (await table.reaction_rows())[0].state == ReactionState.PENDING:
            await table.send()
            await memory_rig.advance(10 * MINUTE)
        assert len(receiver.requests) == TRIES
        assert await outcomes(table) == [("webhook", "failed", 503)]
        await table.courier.close()


async def test_a_webhook_whose_sender_died_is_sent_by_another(rig: Rig) -> None:
    async with receiving() as receiver:
        table, _ = await hooked(rig, receiver)
        (row,) = await table.reactions.due(True, 10)
        claimed = await rig.engine.run(lambda work: table.reactions.claim(work, row.id))
        assert claimed is not None
        assert await table.send() == 0
        await rig.advance(2 * MINUTE)
        assert await table.send() == 1
        assert receiver.requests[0][0]["windlass-delivery"] == claimed.id
        await table.courier.close()


async def test_redirects_are_not_followed(memory_rig: Rig) -> None:
    async with receiving() as receiver, receiving() as other:
        table, _ = await hooked(memory_rig, receiver)
        receiver.status = 307
        receiver.headers = {"Location": other.url}
        await table.send()
        assert other.requests == []
        assert (await table.reaction_rows())[0].message == (
            "answered 307: redirects are not followed"
        )
        await table.courier.close()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "2130706433", "0"])
async def test_no_webhook_reaches_an_address_of_ones_own(memory_rig: Rig, host: str) -> None:
    async with receiving() as receiver:
        table = Timetable(memory_rig)
        url = receiver.url.replace("127.0.0.1", host)
        await submit(memory_rig, on_end=[{"webhook": {"url": url, "secret": SECRET}}])
        await end(await memory_rig.agent())
        await table.send()
        (row,) = await table.reaction_rows()
        assert receiver.requests == []
        assert row.state == ReactionState.FAILED
        assert row.message is not None
        assert "not a public one" in row.message
        await table.courier.close()


async def test_a_receiver_that_does_not_answer_is_left_after_a_while(memory_rig: Rig) -> None:
    async with receiving() as receiver:
        url = receiver.url
    table = Timetable(memory_rig, networks=LOOPBACK)
    await submit(memory_rig, on_end=[{"webhook": {"url": url, "secret": SECRET}}])
    await end(await memory_rig.agent())
    await table.send()
    (row,) = await table.reaction_rows()
    assert (row.state, row.result) == (ReactionState.PENDING, None)
    await table.courier.close()


async def test_secrets_are_nowhere_but_in_the_workflow_itself(memory_rig: Rig) -> None:
    async with receiving() as receiver:
        table, _ = await hooked(memory_rig, receiver)
        await table.send()
        await table.courier.close()
    assert SECRET not in str(await memory_rig.events())
    assert SECRET not in str(await table.reaction_rows())
    shown = conceal([{"webhook": {"url": "https://x", "secret": SECRET}}, {"submit": "a"}])
    assert shown == [{"webhook": {"url": "https://x", "secret": CONCEALED}}, {"submit": "a"}]


HOOK = {"url": "https://example.com/hook", "secret": "s"}


@pytest.mark.parametrize(
    ("value", "field"),
    [
        ({}, "on_end[0]"),
        ({"submit": "a", "webhook": HOOK}, "on_end[0]"),
        ({"submit": ""}, "on_end[0].submit"),
        ({"submit": []}, "on_end[0].submit"),
        ({"submit": [{"task": 1}]}, "on_end[0].submit[0].task"),
        ({"what": 1}, "on_end[0].what"),
        ({"webhook": {"url": "https://example.com"}}, "on_end[0].webhook.secret"),
        ({"webhook": HOOK | {"secret": CONCEALED}}, "on_end[0].webhook.secret"),
        ({"webhook": HOOK | {"url": "ftp://example.com"}}, "on_end[0].webhook.url"),
        ({"webhook": HOOK | {"url": "https://u:p@example.com"}}, "on_end[0].webhook.url"),
        ({"webhook": HOOK | {"url": "https://example.com:0"}}, "on_end[0].webhook.url"),
        ({"webhook": HOOK | {"url": "https:///x"}}, "on_end[0].webhook.url"),
        ({"webhook": HOOK | {"url": "https://exa mple.com"}}, "on_end[0].webhook.url"),
        ({"webhook": HOOK | {"url": "https://2130706433/"}}, "on_end[0].webhook.url"),
        ({"retry": {"delays": []}}, "on_end[0].retry.delays"),
        ({"retry": {"delays": ["1m", "soon"]}}, "on_end[0].retry.delays[1]"),
        ({"retry": {"delays": [-1]}}, "on_end[0].retry.delays[0]"),
    ],
)
def test_reactions_that_cannot_be_meant_are_refused(value: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        parse_reactions([value], "on_end")
    assert refused.value.field == field


def test_there_may_be_so_many_reactions_and_no_more() -> None:
    assert len(parse_reactions([{"submit": "a"}] * 20, "on_end")) == 20
    with pytest.raises(InvalidInput):
        parse_reactions([{"submit": "a"}] * 21, "on_end")
