"""Schedules: each slot runs at most once, and in the way its policies say."""

import asyncio
from typing import Any

import pytest

from tests.engine.support.agent import Agent
from tests.engine.support.rig import MINUTE, SECOND, Rig
from tests.engine.support.timetable import DESCRIPTION, JOB, NAMESPACE, Timetable
from windlass.domain.lifecycle.workflow_state import WorkflowState
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.domain.values.quantities import format_moment, parse_moment
from windlass.engine.loops.planning import CronLoop

HOURLY = "0 * * * *"


def shown(moment: int | None) -> str:
    return "none" if moment is None else format_moment(moment)


async def finish_all(agent: Agent) -> None:
    for job in await agent.take(100):
        await agent.finish(job)


async def test_a_slot_submits_a_workflow_when_it_comes(rig: Rig) -> None:
    table = Timetable(rig)
    row = await table.put("30 22 * * *")
    assert shown(row.next_at) == "2023-11-14T22:30:00.000Z"
    await table.go_to("2023-11-14T22:29:59Z")
    assert (await table.tick()).slots == 0
    await table.go_to("2023-11-14T22:30:00Z")
    report = await table.tick()
    assert (report.slots, report.started) == (1, 1)
    (run,) = await table.runs()
    assert shown(run.slot) == "2023-11-14T22:30:00.000Z"
    (workflow,) = (await rig.snapshot()).workflows
    assert (workflow.id, workflow.name) == (run.workflow, "nightly")
    assert len(await (await rig.agent()).take(10)) == 1
    assert await table.schedules.runs.due(10) == []
    assert (await table.tick()).slots == 0


async def test_a_template_is_started_with_the_parameters_of_the_schedule(rig: Rig) -> None:
    table = Timetable(rig)
    body = {
        "name": "build ${{ parameters.branch }}",
        "priority": 3,
        "parameters": {"branch": {"type": "string"}},
        "jobs": {"only": {"run": ["echo", "${{ parameters.branch }}"]}},
    }
    await table.templates.put(NAMESPACE, "build", body, "ada")
    await table.put(HOURLY, template="build", parameters={"branch": "main"})
    await table.go_to("2023-11-14T23:00:00Z")
    await table.tick()
    (workflow,) = (await rig.snapshot()).workflows
    assert workflow.name == "build main"
    details = await rig.engine.workflows.details(workflow.id)
    assert details.template == "build@1"
    assert details.submitted_by == "schedule nightly"
    assert details.labels == {"schedule": "nightly", "slot": "2023-11-14T23:00:00.000Z"}
    (job,) = (await rig.snapshot()).jobs
    assert job.facts.base == 3


async def test_two_servers_run_a_slot_once(rig: Rig) -> None:
    if rig.kind == "sqlite":
        return  # one server works on a file
    tables = [Timetable(rig), Timetable(rig, await rig.another_engine())]
    await tables[0].put(HOURLY, overlap="allow")
    for hour in ("2023-11-14T23:00:00Z", "2023-11-15T00:00:00Z"):
        await tables[0].go_to(hour)
        await asyncio.gather(*(table.tick() for table in tables * 3))
    assert await tables[0].states() == ["started", "started"]
    assert len((await rig.snapshot()).workflows) == 2


async def test_a_clock_that_steps_back_runs_no_slot_twice(rig: Rig) -> None:
    table = Timetable(rig)
    await table.put("*/10 * * * *", overlap="allow")
    await table.go_to("2023-11-14T22:30:00Z")
    await table.tick()
    await table.go_to("2023-11-14T22:15:00Z")
    for _ in range(20):
        await rig.advance(MINUTE)
        await table.tick()
    slots = [run.slot for run in await table.runs()]
    assert len(slots) == len(set(slots)) == 1
    await table.go_to("2023-11-14T22:40:00Z")
    await table.tick()
    assert len(await table.runs()) == 2


@pytest.mark.parametrize(
    ("policy", "limit", "expected"),
    [
        ("none", 100, []),
        ("last", 100, ["05:00"]),
        ("all", 100, ["23:00", "00:00", "01:00", "02:00", "03:00", "04:00", "05:00"]),
        ("all", 2, ["04:00", "05:00"]),
    ],
)
async def test_after_an_outage_the_catch_up_policy_decides(
    memory_rig: Rig, policy: str, limit: int, expected: list[str]
) -> None:
    table = Timetable(memory_rig)
    await table.put(HOURLY, overlap="allow", catch_up=policy, catch_up_limit=limit)
    await table.go_to("2023-11-15T05:30:00Z")
    await table.tick()
    assert [shown(run.slot)[11:16] for run in await table.runs()] == expected
    skipped = [shown(slot)[11:16] for slot in await table.missed()]
    assert skipped == ([] if expected[:1] == ["23:00"] else ["23:00"])
    said = [e.reason for e in await memory_rig.events() if e.kind == EventKind.SCHEDULE]
    missed = "Schedule nightly missed slots from 2023-11-14T23:00:00.000Z on"
    assert (missed in said) == (expected[:1] != ["23:00"])
    await table.go_to("2023-11-15T06:00:30Z")  # late, but not missed
    await table.tick()
    assert len(await table.runs()) == len(expected) + 1


async def test_a_year_of_missed_minutes_costs_no_more_than_what_is_caught_up(
    memory_rig: Rig,
) -> None:
    table = Timetable(memory_rig)
    await table.put("* * * * *", overlap="allow", catch_up="all", catch_up_limit=3)
    await table.go_to("2025-11-15T05:30:00Z")
    assert (await table.tick()).slots == 4  # three that were missed and that of now
    assert (await table.runs())[-1].slot == memory_rig.now


async def test_an_interval_counts_from_the_creation_and_does_not_drift(rig: Rig) -> None:
    table = Timetable(rig)
    row = await table.put(None, every_ms=90 * MINUTE, overlap="allow")
    assert shown(row.next_at) == format_moment(row.created_at + 90 * MINUTE)
    for late in (0, 40 * SECOND, 3 * SECOND):
        due = (await table.schedules.show(NAMESPACE, "nightly")).row.next_at
        assert due is not None
        await rig.advance(due + late - rig.now)
        assert (await table.tick()).slots == 1
    slots = [run.slot for run in await table.runs()]
    assert slots == [row.created_at + k * 90 * MINUTE for k in (1, 2, 3)]


async def test_two_servers_run_a_slot_of_an_interval_once(rig: Rig) -> None:
    if rig.kind == "sqlite":
        return  # one server works on a file
    tables = [Timetable(rig), Timetable(rig, await rig.another_engine())]
    await tables[0].put(None, every_ms=10 * SECOND, overlap="allow")
    for _ in range(2):
        await rig.advance(10 * SECOND)
        await asyncio.gather(*(table.tick() for table in tables * 3))
    assert await tables[0].states() == ["started", "started"]


@pytest.mark.parametrize(("policy", "slots"), [("none", [5]), ("last", [5]), ("all", [2, 3, 4, 5])])
async def test_a_slot_of_an_interval_is_missed_when_the_next_has_come(
    memory_rig: Rig, policy: str, slots: list[int]
) -> None:
    table = Timetable(memory_rig)
    row = await table.put(
        None, every_ms=10 * SECOND, overlap="allow", catch_up=policy, catch_up_limit=3
    )
    await memory_rig.advance(55 * SECOND)
    await table.tick()
    assert [run.slot for run in await table.runs()] == [
        row.created_at + k * 10 * SECOND for k in slots
    ]


async def test_the_overlap_policy_holds_for_intervals(memory_rig: Rig) -> None:
    table = Timetable(memory_rig)
    await table.put(None, every_ms=10 * SECOND)
    for _ in range(2):
        await memory_rig.advance(10 * SECOND)
        await table.tick()
    assert await table.states() == ["started", "skipped"]


async def test_the_loop_wakes_at_the_next_slot_and_not_a_round_later(rig: Rig) -> None:
    table = Timetable(rig)
    loop = CronLoop(table.engine, table.schedules.runs)
    usual = loop.interval_ms
    await loop.run_once(rig.now)
    assert loop.interval_ms == usual == SECOND
    await table.put(None, every_ms=10 * SECOND)
    await rig.advance(9_700)
    await loop.run_once(rig.now)
    assert loop.interval_ms == 300
    await rig.advance(300)
    assert (await loop.run_once(rig.now)).slots == 1
    assert loop.interval_ms == usual


async def test_another_interval_begins_behind_what_has_run(rig: Rig) -> None:
    table = Timetable(rig)
    row = await table.put(None, every_ms=60 * SECOND, overlap="allow")
    await rig.advance(60 * SECOND)
    await table.tick()
    changed = await table.put(None, every_ms=25 * SECOND, overlap="allow")
    assert changed.next_at == row.created_at + 75 * SECOND
    assert (await table.put(HOURLY)).every_ms is None


async def test_allow_starts_runs_beside_each_other(rig: Rig) -> None:
    table = Timetable(rig)
    await table.put(HOURLY, overlap="allow")
    for hour in ("2023-11-14T23:00:00Z", "2023-11-15T00:00:00Z"):
        await table.go_to(hour)
        await table.tick()
    assert await table.states() == ["started", "started"]


async def test_skip_leaves_a_slot_out_while_a_run_goes_on(rig: Rig) -> None:
    table = Timetable(rig)
    agent = await rig.agent()
    await table.put(HOURLY, overlap="skip")
    for hour in ("2023-11-14T23:00:00Z", "2023-11-15T00:00:00Z"):
        await table.go_to(hour)
        await table.tick()
    first, second = await table.runs()
    assert await table.states() == ["started", "skipped"]
    assert second.reason == f"workflow {first.workflow} was still running"
    await finish_all(agent)
    await table.go_to("2023-11-15T01:00:00Z")
    await table.tick()
    assert await table.states() == ["ended", "skipped", "started"]
    assert (await table.runs())[0].reason == "completed"


async def test_queue_starts_the_next_run_when_the_one_before_has_ended(rig: Rig) -> None:
    table = Timetable(rig)
    agent = await rig.agent()
    await table.put(HOURLY, overlap="queue")
    for hour in ("2023-11-14T23:00:00Z", "2023-11-15T00:00:00Z", "2023-11-15T01:00:00Z"):
        await table.go_to(hour)
        await table.tick()
    assert await table.states() == ["started", "waiting", "waiting"]
    await finish_all(agent)
    await table.tick()
    assert await table.states() == ["ended", "started", "waiting"]
    await finish_all(agent)
    await table.tick()
    assert await table.states() == ["ended", "ended", "started"]


async def test_cancel_ends_the_running_one_first(rig: Rig) -> None:
    table = Timetable(rig)
    agent = await rig.agent()
    await table.put(HOURLY, overlap="cancel")
    await table.go_to("2023-11-14T23:00:00Z")
    await table.tick()
    job = await agent.take_one()
    await table.go_to("2023-11-15T00:00:00Z")
    await table.tick()
    first, _ = await table.runs()
    assert await table.states() == ["started", "waiting"]
    assert first.workflow is not None
    assert await table.workflow(first.workflow) is WorkflowState.CANCELING
    await table.go_to("2023-11-15T01:00:00Z")
    await table.tick()
    assert await table.states() == ["started", "skipped", "waiting"]
    await agent.finish(job, "canceled")
    await table.tick()
    assert await table.states() == ["ended", "skipped", "started"]


async def test_a_paused_schedule_lets_its_slots_pass(rig: Rig) -> None:
    table = Timetable(rig)
    await table.put(HOURLY, catch_up="all")
    assert await table.schedules.set_paused(NAMESPACE, "nightly", True, "ada") is True
    assert await table.schedules.set_paused(NAMESPACE, "nightly", True, "ada") is False
    await table.go_to("2023-11-15T03:30:00Z")
    await table.tick()
    assert await table.schedules.set_paused(NAMESPACE, "nightly", False, "ada") is True
    await table.tick()
    assert await table.runs() == []
    await table.go_to("2023-11-15T04:00:00Z")
    await table.tick()
    assert await table.states() == ["started"]


async def test_a_run_by_hand_stands_beside_the_slots(rig: Rig) -> None:
    table = Timetable(rig)
    await table.put(HOURLY, overlap="allow")
    run = await table.schedules.run_now(NAMESPACE, "nightly", "ada")
    assert (run.slot, run.actor) == (None, "ada")
    assert run.workflow
    await table.go_to("2023-11-14T23:00:00Z")
    await table.tick()
    assert await table.states() == ["started", "started"]


async def test_a_run_that_cannot_be_started_fails_and_the_next_slot_goes_on(rig: Rig) -> None:
    table = Timetable(rig)
    await table.templates.put(NAMESPACE, "build", DESCRIPTION, "ada")
    await table.put(HOURLY, template="build")
    await table.templates.remove(NAMESPACE, "build", "ada")
    await table.go_to("2023-11-14T23:00:00Z")
    await table.tick()
    (run,) = await table.runs()
    assert await table.states() == ["failed"]
    assert run.reason == "template build does not exist"
    await table.templates.put(NAMESPACE, "build", DESCRIPTION, "ada")
    await table.go_to("2023-11-15T00:00:00Z")
    await table.tick()
    assert await table.states() == ["failed", "started"]


async def test_a_server_that_died_after_noting_a_slot_loses_nothing(rig: Rig) -> None:
    table = Timetable(rig)
    row = await table.put(HOURLY)
    await table.go_to("2023-11-14T23:00:00Z")
    assert await table.schedules.runs.note_slots(row.id) == 1
    await rig.restart()
    after = Timetable(rig)
    await after.tick()
    assert await after.states() == ["started"]
    assert len((await rig.snapshot()).workflows) == 1


async def test_changing_the_line_keeps_what_has_run(rig: Rig) -> None:
    table = Timetable(rig)
    await table.put(HOURLY)
    await table.go_to("2023-11-14T23:00:00Z")
    await table.tick()
    changed = await table.put("0,30 * * * *")
    assert shown(changed.next_at) == "2023-11-14T23:30:00.000Z"
    again = await table.put("0,30 * * * *")
    assert again == changed


async def test_a_removed_schedule_runs_no_more_and_its_name_is_free(rig: Rig) -> None:
    table = Timetable(rig)
    first = await table.put(HOURLY)
    await table.go_to("2023-11-14T23:00:00Z")
    await table.tick()
    assert await table.schedules.remove(NAMESPACE, "nightly", "ada") is True
    assert await table.schedules.remove(NAMESPACE, "nightly", "ada") is False
    with pytest.raises(NotFound, match="schedule nightly"):
        await table.schedules.show(NAMESPACE, "nightly")
    second = await table.put(HOURLY)
    assert second.id != first.id
    await table.tick()
    assert await table.runs() == []


async def test_everything_that_people_did_is_in_the_log(rig: Rig) -> None:
    table = Timetable(rig)
    await table.put(HOURLY)
    await table.put("5 * * * *")
    await table.schedules.set_paused(NAMESPACE, "nightly", True, "eve")
    await table.schedules.set_paused(NAMESPACE, "nightly", False, "eve")
    await table.schedules.run_now(NAMESPACE, "nightly", "bob")
    await table.schedules.remove(NAMESPACE, "nightly", "bob")
    told = [(e.reason, e.actor) for e in await rig.events() if e.kind == EventKind.SCHEDULE]
    assert told == [
        ("Schedule nightly put", "ada"),
        ("Schedule nightly changed", "ada"),
        ("Schedule nightly paused", "eve"),
        ("Schedule nightly resumed", "eve"),
        ("Schedule nightly run by hand", "bob"),
        ("Schedule nightly, by hand: started workflow 1", "bob"),
        ("Schedule nightly removed", "bob"),
    ]


@pytest.mark.parametrize(
    ("line", "fields", "field", "error"),
    [
        ("61 * * * *", {}, "cron", InvalidInput),
        ("0 0 30 2 *", {}, "cron", InvalidInput),
        ("* * * * * *", {}, "cron", InvalidInput),
        (None, {}, "cron", InvalidInput),
        (HOURLY, {"every_ms": MINUTE}, "cron", InvalidInput),
        (None, {"every_ms": 999}, "every", InvalidInput),
        (None, {"every_ms": 0}, "every", InvalidInput),
        (None, {"every_ms": MINUTE, "zone": "Europe/Berlin"}, "zone", InvalidInput),
        (HOURLY, {"zone": "Mars/Olympus"}, "zone", InvalidInput),
        (HOURLY, {"overlap": "maybe"}, "overlap", InvalidInput),
        (HOURLY, {"catch_up": "some"}, "catch_up", InvalidInput),
        (HOURLY, {"catch_up_limit": 0}, "catch_up_limit", InvalidInput),
        (HOURLY, {"jobs": []}, "template", InvalidInput),
        (HOURLY, {"jobs": [{"task": "shell", "what": 1}]}, "jobs[0].what", InvalidInput),
        (HOURLY, {"jobs": [JOB | {"after": ["x"], "name": "y"}]}, "jobs[0].after", InvalidInput),
        (HOURLY, {"jobs": [JOB], "parameters": {"a": 1}}, "parameters", InvalidInput),
        (HOURLY, {"name": "a/b"}, "name", InvalidInput),
        (HOURLY, {"template": "unknown"}, "template", NotFound),
        (HOURLY, {"template": "build@x"}, "template", InvalidInput),
        (HOURLY, {"template": "build@2"}, "template", NotFound),
        (HOURLY, {"template": "build"}, "parameters.branch", InvalidInput),
        (HOURLY, {"template": "build", "parameters": {"branch": []}}, "parameters.branch",
         InvalidInput),
        (HOURLY, {"template": "build", "parameters": {"b": 1}}, "parameters", InvalidInput),
    ],
)  # fmt: skip
async def test_what_could_not_run_is_refused_by_name(
    memory_rig: Rig, line: str | None, fields: dict[str, Any], field: str, error: type[Exception]
) -> None:
    table = Timetable(memory_rig)
    body = {**DESCRIPTION, "parameters": {"branch": {"type": "string"}}}
    await table.templates.put(NAMESPACE, "build", body, "ada")
    with pytest.raises(error) as refused:
        await table.put(line, **fields)
    assert refused.value.details()["field"] == field  # type: ignore[attr-defined]
    assert (await memory_rig.snapshot()).schedules == ()


async def test_slots_are_those_of_the_zone(memory_rig: Rig) -> None:
    table = Timetable(memory_rig)
    await table.go_to("2026-03-28T00:00:00Z")
    await table.put("30 2 * * *", zone="Europe/Berlin", overlap="allow")
    end = parse_moment("2026-03-31T00:00:00Z", "x")
    while memory_rig.now < end:
        await memory_rig.advance(30 * SECOND * 20)
        await table.tick()
    slots = [shown(run.slot)[:16] for run in await table.runs()]
    # On the 29th there is no 02:30: it comes when the hour is over, at 03:00 (01:00 UTC).
    assert slots == ["2026-03-28T01:30", "2026-03-29T01:00", "2026-03-30T00:30"]
