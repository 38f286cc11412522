"""Bad input: each a clear error that names the field, what was expected and what came."""

import json
from typing import Any

import msgspec
import pytest

from tests.engine.support.rig import Rig
from windlass.domain.config import Config
from windlass.domain.job.forms import Concurrency, RateLimit
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.states import parse_state
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.domain.values.quantities import DURATION_LIMIT_MS
from windlass.engine.submit.submission import WorkflowSpec
from windlass.messages.sync import Finished, Held, Released, Started, SyncRequest
from windlass.ports.gateway import Holder

NAN = float("nan")
HUGE = 2**70


def nested(depth: int, inmost: object = None) -> object:
    value: object = inmost
    for _ in range(depth):
        value = [value]
    return value


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"task": ""}, "jobs[0].task"),
    ({"task": "a\x00b"}, "jobs[0].task"),
    ({"task": "a\nb"}, "jobs[0].task"),
    ({"task": "x" * 201}, "jobs[0].task"),
    ({"task": "\ud800"}, "jobs[0]"),
    ({"queue": ""}, "jobs[0].queue"),
    ({"queue": "q\x00"}, "jobs[0].queue"),
    ({"namespace": "x" * 201}, "jobs[0].namespace"),
    ({"name": ""}, "jobs[0].name"),
    ({"key": "k\x00"}, "jobs[0].key"),
    ({"key": "x" * 201}, "jobs[0].key"),
    ({"submitted_by": "\x1b[31m"}, "jobs[0].submitted_by"),
    ({"args": {"text": "a\x00b"}}, "jobs[0].args"),
    ({"args": {"a\x00": 1}}, "jobs[0].args"),
    ({"args": ["\ud800"]}, "jobs[0]"),
    ({"args": [1.0, NAN]}, "jobs[0].args"),
    ({"args": {"x": float("inf")}}, "jobs[0].args.x"),
    ({"args": object()}, "jobs[0].args"),
    ({"args": nested(100_000)}, "jobs[0].args"),
    ({"args": nested(940)}, "jobs[0].args"),
    ({"args": nested(201, "\x00")}, "jobs[0].args"),
    ({"args": "x" * 1024 * 1024}, "jobs[0]"),
    ({"priority": HUGE}, "jobs[0].priority"),
    ({"priority": -1_000_001}, "jobs[0].priority"),
    ({"priority": "urgent"}, "jobs[0].priority"),
    ({"priority": 1.5}, "jobs[0].priority"),
    ({"priority": True}, "jobs[0].priority"),
    ({"priority": NAN}, "jobs[0].priority"),
    ({"requires": ("memory",)}, "jobs[0].requires"),
    ({"requires": ("memory>=lots",)}, "jobs[0].requires memory"),
    ({"requires": ("memory>=1\x00",)}, "jobs[0].requires"),
    ({"requires": (5,)}, "jobs[0].requires"),
    ({"resources": {"cpus": -1}}, "jobs[0].resources.cpus"),
    ({"resources": {"cpus": NAN}}, "jobs[0].resources.cpus"),
    ({"resources": {"cpus": [1]}}, "jobs[0].resources.cpus"),
    ({"resources": {"cpus": {"a": 1}}}, "jobs[0].resources.cpus"),
    ({"resources": {"memory": "much"}}, "jobs[0].resources.memory"),
    ({"resources": {"": 1}}, "jobs[0].resources"),
    ({"target": ""}, "jobs[0].target"),
    ({"timeout": 0}, "jobs[0].timeout"),
    ({"timeout": -5}, "jobs[0].timeout"),
    ({"timeout": HUGE}, "jobs[0].timeout"),
    ({"timeout": True}, "jobs[0].timeout"),
    ({"timeout": "soon"}, "jobs[0].timeout"),
    ({"idle_timeout": 0}, "jobs[0].idle_timeout"),
    ({"duration": -1}, "jobs[0].duration"),
    ({"capability_grace": "always"}, "jobs[0].capability_grace"),
    ({"not_before": 5}, "jobs[0].not_before"),
    ({"not_before": "1969-12-31T23:59:59Z"}, "jobs[0].not_before"),
    ({"not_before": "2100-01-01T00:00:00Z"}, "jobs[0].not_before"),
    ({"rate": RateLimit("api", 0)}, "jobs[0].rate.per"),
    ({"rate": RateLimit("api", "fast")}, "jobs[0].rate.per"),
    ({"retries": -1}, "jobs[0].retries"),
    ({"retries": 1001}, "jobs[0].retries"),
    ({"retry_on": ("bad luck",)}, "jobs[0].retry_on"),
    ({"retry_on": ("canceled",)}, "jobs[0].retry_on"),
    ({"labels": {"a" * 201: "b"}}, "jobs[0].labels"),
    ({"labels": {"a": "b" * 201}}, "jobs[0].labels.a"),
    ({"labels": {"a": "b\x00"}}, "jobs[0].labels"),
    ({"labels": {str(n): "" for n in range(101)}}, "jobs[0].labels"),
    ({"concurrency": Concurrency(key="")}, "jobs[0].concurrency.key"),
    ({"concurrency": Concurrency(key="k", max=0)}, "jobs[0].concurrency.max"),
    ({"concurrency": Concurrency(key="k", max=HUGE)}, "jobs[0].concurrency.max"),
    ({"after": (0,)}, "jobs[0].after"),
    ({"after": (-3,)}, "jobs[0].after"),
    ({"after": (HUGE,)}, "jobs[0].after"),
    ({"after": (12345,)}, "jobs[0].after"),
    ({"after_any": (12345,)}, "jobs[0].after_any"),
    ({"after": ("nobody",)}, "jobs[0].after"),
    ({"after": ("me",), "name": "me"}, "jobs[0].after"),
    ({"parent": 0}, "jobs[0].parent"),
    ({"workflow": -1}, "jobs[0].workflow"),
]


@pytest.mark.parametrize(
    ("fields", "field"), REFUSED, ids=[f"{n}-{field}" for n, (_, field) in enumerate(REFUSED)]
)
async def test_a_bad_job_is_refused_by_name(
    memory_rig: Rig, fields: dict[str, Any], field: str
) -> None:
    fine = JobSpec(task="shell", args=1)
    with pytest.raises(InvalidInput) as refused:
        await memory_rig.engine.submit([JobSpec(**{"task": "shell", **fields})])
    error = refused.value
    assert error.field == field
    assert error.message.startswith(f"expected {field} to be {error.expected}, got ")
    assert len(json.dumps(error.describe())) < 1_000
    with pytest.raises(InvalidInput):
        await memory_rig.engine.submit([fine, JobSpec(**{"task": "shell", **fields})])
    assert (await memory_rig.snapshot()).jobs == ()


async def test_a_job_cannot_depend_on_its_own_id(rig: Rig) -> None:
    known = await rig.submit()
    with pytest.raises(InvalidInput, match=r"expected jobs\[0\]\.after to be the id of an exist"):
        await rig.submit(after=(known + 1,))


async def test_a_job_cannot_depend_on_the_id_its_neighbour_will_get(rig: Rig) -> None:
    known = await rig.submit()
    with pytest.raises(InvalidInput, match=r"jobs\[1\]\.after_any to be the id of an existing"):
        await rig.submit_all({"name": "a"}, {"after_any": (known + 1,)})


async def test_a_cycle_is_named_in_full(rig: Rig) -> None:
    with pytest.raises(InvalidInput, match="free of cycles, got a → c → b → a"):
        await rig.submit_all(
            {"name": "a", "after": ("c",)},
            {"name": "b", "after_any": ("a",)},
            {"name": "c", "after": ("b",)},
        )
    assert (await rig.snapshot()).jobs == ()


async def test_a_dependency_in_another_namespace_is_refused(rig: Rig) -> None:
    other = await rig.submit(namespace="theirs")
    with pytest.raises(InvalidInput, match="jobs of namespace mine"):
        await rig.submit(namespace="mine", after=(other,))


@pytest.mark.parametrize("field", ["after", "after_any"])
async def test_a_job_of_another_namespace_reads_as_if_it_did_not_exist(
    memory_rig: Rig, field: str
) -> None:
    other = await memory_rig.submit(namespace="theirs")
    answers = []
    for job in (other, 999):
        wanted: dict[str, Any] = {field: (job,)}
        with pytest.raises(InvalidInput) as refused:
            await memory_rig.submit(namespace="mine", **wanted)
        answers.append(str(refused.value).replace(str(job), "ID"))
    assert answers[0] == answers[1]


@pytest.mark.parametrize("text", ["six typed characters: \\u0000", "null and nan", "\\x00"])
async def test_text_that_only_looks_bad_is_taken(rig: Rig, text: str) -> None:
    job = await rig.submit(args={"text": text, "none": None})
    assert await rig.state(job) == "queued"


async def test_the_extremes_that_are_allowed_are_stored(rig: Rig) -> None:
    job = await rig.submit(
        "t" * 200,
        args={"small": -(2**63), "large": HUGE, "text": "\N{GRINNING FACE}\x7f"},
        priority=-999_000,
        key="k" * 200,
        labels={"l" * 200: "v" * 200},
        concurrency=Concurrency(key="c" * 200, max=1_000_000),
        timeout_ms=DURATION_LIMIT_MS,
        retries=1_000,
    )
    (given,) = await (await rig.agent()).take()
    assert given.job == job


async def test_the_payload_limit_is_the_configured_one(memory_rig: Rig) -> None:
    await memory_rig.restart(Config(payload_limit=1_000))
    await memory_rig.submit(args="x" * 900)
    with pytest.raises(InvalidInput, match="at most 1000 bytes as JSON, got 10"):
        await memory_rig.submit(args="x" * 1_000)


@pytest.mark.parametrize("name", ["", "a\x00", "x" * 201, "\ud800"])
async def test_a_workflow_needs_a_name(memory_rig: Rig, name: str) -> None:
    with pytest.raises(InvalidInput, match=r"expected workflow\.name"):
        await memory_rig.engine.submit([JobSpec(task="t")], WorkflowSpec(name=name))


def test_an_unknown_state_is_refused_and_the_known_ones_are_named() -> None:
    with pytest.raises(InvalidInput, match=r"unknown state lost \(expected one of blocked, "):
        parse_state("lost")


def test_an_unknown_outcome_is_refused_on_the_wire() -> None:
    body = b'{"incarnation":1,"seq":1,"finished":[{"job":1,"attempt":1,"outcome":"exploded"}]}'
    with pytest.raises(msgspec.ValidationError, match="exploded"):
        msgspec.json.decode(body, type=SyncRequest)


SYNCS: list[tuple[dict[str, Any], str]] = [
    ({"wait_ms": -1}, "wait_ms"),
    ({"wait_ms": 30_001}, "wait_ms"),
    ({"want": -1}, "want"),
    ({"want": HUGE}, "want"),
    ({"seq": HUGE}, "seq"),
    ({"received": HUGE}, "received"),
    ({"received": -1}, "received"),
    ({"incarnation": HUGE}, "incarnation"),
    ({"started": (Started(HUGE, 1),)}, "started[0].job"),
    ({"finished": (Finished(1, HUGE),)}, "finished[0].attempt"),
    ({"finished": (Finished(1, 1), Finished(0, 1))}, "finished[1].job"),
    ({"released": (Released(-1, 1),)}, "released[0].job"),
    ({"held": (Held(1, -1),)}, "held[0].attempt"),
    ({"metadata": {"a": "\ud800"}}, "metadata"),
    ({"metadata": {"a": "\x00"}}, "metadata"),
    ({"metadata": {"a": "x" * 1024 * 1024}}, "metadata"),
]


@pytest.mark.parametrize(
    ("fields", "field"), SYNCS, ids=[f"{n}-{field}" for n, (_, field) in enumerate(SYNCS)]
)
async def test_a_bad_sync_is_refused_by_name(
    memory_rig: Rig, fields: dict[str, Any], field: str
) -> None:
    agent = await memory_rig.agent()
    with pytest.raises(InvalidInput) as refused:
        await agent.sync(**fields)
    assert refused.value.field == field


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "a\x00"}, "name"),
        ({"slots": 0}, "slots"),
        ({"slots": HUGE}, "slots"),
        ({"metadata": {"a": "\ud800"}}, "metadata"),
        ({"metadata": {"a": "\x00"}}, "metadata"),
        ({"metadata": {"a": object()}}, "metadata"),
        ({"metadata": {"a": "x" * 1024 * 1024}}, "metadata"),
    ],
)
async def test_a_bad_enrolment_is_refused_by_name(
    memory_rig: Rig, fields: dict[str, Any], field: str
) -> None:
    with pytest.raises(InvalidInput) as refused:
        await memory_rig.enrol(**{"name": "w", **fields})
    assert refused.value.field == field


@pytest.mark.parametrize("job", [0, -1, HUGE, True, 1.5, "1"])
async def test_ids_that_cannot_be_are_refused(memory_rig: Rig, job: Any) -> None:
    engine = memory_rig.engine
    calls = [
        engine.jobs.cancel([job]),
        engine.jobs.retry(job),
        engine.jobs.unblock(job),
        engine.jobs.adjust_priority(job, 1),
        engine.steps.note_alive(Holder(1, 1, job, 1)),
    ]
    for call in calls:
        with pytest.raises(InvalidInput, match=r"expected .*job"):
            await call


@pytest.mark.parametrize("text", ["\x00", "\ud800", "x" * 1_001])
async def test_reasons_and_actors_are_checked(memory_rig: Rig, text: str) -> None:
    job = await memory_rig.submit(unblock="manual")
    engine = memory_rig.engine
    for call, field in (
        (engine.jobs.cancel([job], reason=text), "reason"),
        (engine.jobs.cancel([job], actor=text), "actor"),
        (engine.jobs.unblock(job, accept=False, reason=text), "reason"),
        (engine.jobs.retry(job, actor=text), "actor"),
        (engine.jobs.adjust_priority(job, 1, actor=text), "actor"),
        (engine.queues.pause("default", actor=text), "actor"),
        (engine.queues.pause(text), "queue"),
    ):
        with pytest.raises(InvalidInput) as refused:
            await call
        assert refused.value.field == field


@pytest.mark.parametrize("adjustment", [HUGE, -HUGE, 1_000_000, 1.5, NAN, "high"])
async def test_an_adjustment_beyond_the_limit_is_refused(memory_rig: Rig, adjustment: Any) -> None:
    job = await memory_rig.submit()
    with pytest.raises(InvalidInput, match="expected adjustment"):
        await memory_rig.engine.jobs.adjust_priority(job, adjustment)


async def test_unknown_jobs_are_not_found(rig: Rig) -> None:
    for call in (
        rig.engine.jobs.retry(9),
        rig.engine.jobs.unblock(9),
        rig.engine.jobs.adjust_priority(9, 1),
    ):
        with pytest.raises(WindlassError, match="job 9 does not exist"):
            await call
