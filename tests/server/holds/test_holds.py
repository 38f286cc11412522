"""Long steps are measured, counted, logged with what they worked on, and divided."""

import asyncio
import gc
from typing import Any

import msgspec
import pytest
from structlog.testing import capture_logs

from tests.server.holds.rows import nested, template
from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, job, running_server
from tests.support.waiting import until
from windlass.clock import thread_seconds
from windlass.domain.access.rights import Role
from windlass.operations import events
from windlass.ports import loop_time
from windlass.ports.loop_time import DOING, SLICE_S, STEP, give_way, give_way_if_long
from windlass.server.metrics import holds
from windlass.server.metrics.holds import MAX_HOLD_S, Holds

MANY = 5_000


def _spin(seconds: float) -> None:
    end = thread_seconds() + seconds
    while thread_seconds() < end:
        pass


def test_a_long_step_is_counted_and_logged_once_with_its_route() -> None:
    async def hold() -> None:
        DOING.set("GET /slow")
        for _ in range(3):
            _spin(MAX_HOLD_S * 1.2)
            await give_way()

    async def scenario() -> None:
        holds = Holds()
        holds.watch(asyncio.get_running_loop())
        with capture_logs() as logged:
            await asyncio.create_task(hold())
        (line,) = logged
        assert (line["log_level"], line["work"]) == ("warning", "GET /slow")
        assert MAX_HOLD_S < holds.longest["GET /slow"] < 10 * MAX_HOLD_S
        (count,) = (
            sample.value
            for family in holds.families()
            for sample in family.samples
            if sample.name == "windlass_event_loop_holds_total"
            and sample.labels == {"work": "GET /slow"}
        )
        assert count == 3

    run(scenario())


def test_long_work_gives_way_when_its_slice_is_over() -> None:
    async def work(turns: list[str]) -> None:
        await give_way_if_long()
        turns.append("went on")
        _spin(2 * SLICE_S)
        assert STEP.taken() > SLICE_S
        await give_way_if_long()
        turns.append("ended")

    async def other(turns: list[str]) -> None:
        turns.append("other")

    async def scenario() -> list[str]:
        Holds().watch(asyncio.get_running_loop())
        turns: list[str] = []
        await asyncio.gather(work(turns), other(turns))
        return turns

    assert run(scenario()) == ["went on", "other", "ended"]


def test_short_steps_do_not_read_the_processor_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It takes a system call, which requests of 20 steps would feel."""
    reads = 0

    def read() -> float:
        nonlocal reads
        reads += 1
        return thread_seconds()

    async def work() -> None:
        for _ in range(100):
            await give_way()
            await give_way_if_long()

    async def scenario() -> None:
        Holds().watch(asyncio.get_running_loop())
        await asyncio.create_task(work())

    monkeypatch.setattr(holds, "thread_seconds", read)
    monkeypatch.setattr(holds, "wall_seconds", lambda: 7.0)  # every step takes no time
    run(scenario())
    assert reads <= 2


def test_another_loop_does_not_depend_on_what_a_step_took() -> None:
    async def watch() -> None:
        Holds().watch(asyncio.get_running_loop())

    async def taken() -> float:
        _spin(SLICE_S)
        return STEP.taken()

    run(watch())
    assert run(taken()) == 0.0


def test_in_a_server_the_collector_stays_off_for_a_while_after_a_pause(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would walk all that was made in the pause, at once."""
    monkeypatch.setattr(loop_time._PAUSES, "linger", True)
    monkeypatch.setattr(loop_time, "LINGER_S", 0.0)

    async def scenario() -> list[bool]:
        was_on = [gc.isenabled()]
        with loop_time.gc_paused():
            was_on.append(gc.isenabled())
        was_on.append(gc.isenabled())
        await loop_time.pass_time(0)
        return [*was_on, gc.isenabled()]

    assert run(scenario()) == [True, False, False, True]
    with loop_time.gc_paused():  # without a loop there is nobody to wait for
        pass
    assert gc.isenabled()


async def _longest(server: RunningServer, route: str) -> float:
    return server.services.meters.holds.longest.get(route, 0.0)


def test_reading_a_long_log_is_bounded_and_goes_on_at_the_cursor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "MAX_LOOKED", 1_000)

    async def scenario() -> None:
        async with running_server() as server:
            await server.submit(*[job()] * 2_500)
            after, seen, answers = 0, 0, 0
            while True:
                path = f"/api/v1/events?follow=false&after={after}"
                text = (await server.admin.get(path)).text
                found = text.split("\r\n\r\n")[:-1]
                more = [one for one in found if "event: more" in one]
                seen += len(found) - len(more)
                answers += 1
                assert len(found) <= 1_001
                if not more:
                    break
                data = more[0].partition("data: ")[2]
                after = msgspec.json.decode(data)["after"]
            assert (seen >= 2_500, answers >= 3) == (True, True)

    run(scenario())


def test_others_are_answered_while_somebody_reads_a_long_log(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer to /healthz does not wait for the end of a reading that was begun before."""
    monkeypatch.setattr(events, "CHUNK", 10)

    async def scenario() -> None:
        async with running_server() as server:
            await server.submit(*[job()] * MANY)
            viewer = await server.role(Role.VIEWER)
            path = "/api/v1/events?follow=false"
            readings = [asyncio.ensure_future(server.admin.get(path)) for _ in range(4)]
            await until("they read", lambda: _has_begun(server), 60)
            assert (await viewer.get("/healthz")).status_code == 200
            assert not all(reading.done() for reading in readings)
            for reading in readings:
                assert (await reading).status_code == 200

    run(scenario())


async def _has_begun(server: RunningServer) -> bool:
    return server.services.feed.chunk_turn.locked()


def test_too_many_readings_of_one_caller_are_refused() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.submit(*[job()] * MANY)
            path = "/api/v1/events?follow=false"
            replies = await asyncio.gather(*(server.admin.get(path) for _ in range(20)))
            assert {reply.status_code for reply in replies} == {200, 429}

    run(scenario())


def test_too_many_searches_for_the_last_events_are_refused_though_the_answers_follow() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            await server.submit(*[job()] * MANY)

            async def ask() -> int:
                path = "/api/v1/events?last=100000&kind=queue"  # It reads all events behind.
                async with server.admin.stream("GET", path) as reply:
                    return reply.status_code

            assert {*await asyncio.gather(*(ask() for _ in range(20)))} == {200, 429}

    run(scenario())


@pytest.mark.parametrize(
    ("method", "path", "field"),
    [
        ("POST", "/api/v1/jobs", "jobs"),
        ("PUT", "/api/v1/templates/t", "body"),
        ("POST", "/api/v1/signals", "payload"),
        ("POST", "/api/v1/jobs/preview", "job"),
    ],
)
@pytest.mark.parametrize("levels", [150, 900, 5_000])
def test_what_is_too_deep_is_refused_with_the_field_and_the_limit(
    method: str, path: str, field: str, levels: int
) -> None:
    deep = "[" * levels + "]" * levels
    inner = {
        "jobs": f'[{{"task": "t", "args": {{"x": {deep}}}}}]',
        "body": f'{{"name": "t", "jobs": {{"a": {{"task": "t", "args": {{"x": {deep}}}}}}}}}',
        "payload": deep,
        "job": f'{{"task": "t", "args": {{"x": {deep}}}}}',
    }[field]
    name = '"name": "go", ' if field == "payload" else ""

    async def scenario() -> None:
        async with running_server() as server:
            reply = await server.admin.request(
                method, path, content=f'{{{name}"{field}": {inner}}}',
                headers={"Content-Type": "application/json"},
            )  # fmt: skip
            error = error_of(reply)
            assert 400 <= reply.status_code < 500, error
            assert error["field"] in (field, "body"), error
            assert error["expected"] == "at most 100 lists and objects inside one another"

    run(scenario())


def test_a_large_body_is_decoded_job_by_job_and_misfits_name_the_job() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            jobs = [job(labels={"n": str(n)}) for n in range(MANY)]
            reply = await server.admin.post("/api/v1/jobs", json={"jobs": jobs, "key": "k"})
            assert (reply.status_code, len(reply.json()["ids"])) == (201, MANY)
            again = await server.admin.post("/api/v1/jobs", json={"jobs": jobs, "key": "k"})
            assert again.json()["ids"] == reply.json()["ids"]
            for wrong, field in (
                ({**jobs[7], "retries": "many"}, "jobs[7].retries"),
                ({"args": {}}, "jobs[7].task"),
                (7, "jobs[7]"),
                ({**jobs[7], "colour": "red"}, "jobs[7].colour"),
                ({"task": "t", "args": {"x": nested(150)}}, "jobs[7].args"),
            ):
                body: dict[str, Any] = {"jobs": [*jobs[:7], wrong, *jobs[8:]]}
                reply = await server.admin.post("/api/v1/jobs", json=body)
                assert (error_of(reply)["field"], reply.status_code // 100) == (field, 4), field

    run(scenario())


def test_too_many_values_in_one_body_are_refused() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            values: list[list[int]] = [[]] * 200_000
            body: dict[str, Any] = {"name": "go", "payload": values}
            reply = await server.admin.post("/api/v1/signals", json=body)
            assert (reply.status_code, "300000 values" in error_of(reply)["message"]) == (413, True)

    run(scenario())


def test_a_template_that_expands_to_many_jobs_is_planned_off_the_loop() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            path = "/api/v1/templates/many"
            reply = await server.admin.put(path, json={"body": template(20_000)})
            assert reply.status_code == 200
            reply = await server.admin.post(f"{path}/preview", json={})
            assert reply.status_code == 200
            for route in ("PUT /api/v1/templates/{name:str}",
                          "POST /api/v1/templates/{name:str}/preview"):  # fmt: skip
                assert await _longest(server, route) <= MAX_HOLD_S

    run(scenario())
