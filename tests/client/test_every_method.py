"""Every method of a client, against a server and embedded: the answers are the same.

A row calls methods and returns what they answered. A public method without a row fails a test.
`WAYS` are the ways to a scheduler: both clients, each over HTTP and embedded.
"""

import asyncio
import hashlib
import re
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
import pytest

import windlass
from tests.client.awaited import Awaited
from tests.support.postgres import PostgresServer
from tests.support.running import run
from tests.support.running_server import running_server
from windlass.assembly.stores import upgrade_store
from windlass.client import resources
from windlass.client.builder import AsyncWorkflowBlock
from windlass.client.client import AsyncClient
from windlass.client.handles import AsyncJob
from windlass.client.resources import (
    AsyncPools,
    AsyncQueues,
    AsyncSchedules,
    AsyncTemplates,
    AsyncTokens,
    AsyncWorkers,
)
from windlass.client.service import Service
from windlass.client.transport import Transport
from windlass.client.workflows import AsyncWorkflow
from windlass.domain.access.rights import Role
from windlass.domain.values.errors import Lost
from windlass.embedded.in_process import OWN, InProcess
from windlass.messages.jobs import NewWorkflow, Where
from windlass.messages.steps import StepRequest
from windlass.messages.sync import EnrolRequest, Finished, SyncRequest
from windlass.operations.services import Services
from windlass.ports.gateway import Holder
from windlass.worker.agent.direct import DirectGateway

T = TypeVar("T")

CLASSES: Final = (
    AsyncClient, AsyncJob, AsyncWorkflow, AsyncWorkflowBlock, AsyncWorkers, AsyncQueues,
    AsyncTemplates, AsyncSchedules, AsyncPools, AsyncTokens,
)  # fmt: skip
# They ask nothing: who they are, what they are made of, how they begin and end.
ASK_NOTHING: Final = frozenset(
    {
        "AsyncClient.close", "AsyncClient.instead", "AsyncClient.open", "AsyncClient.place",
        "AsyncClient.service", "AsyncClient.transport", "AsyncClient.with_options",
        "AsyncClient.workers", "AsyncClient.queues",
        "AsyncClient.templates", "AsyncClient.schedules", "AsyncClient.pools",
        "AsyncClient.tokens", "AsyncJob.id", "AsyncJob.service", "AsyncWorkflow.id",
        "AsyncWorkflowBlock.id",
        "AsyncJob.note_end",  # of a handle that waited with others
        "AsyncJob.checked", "AsyncJob.given_at",
    }
)  # fmt: skip
ELSEWHERE: Final = {"AsyncClient.submit_in": "tests/transactions: it needs a database of the user"}

TRUE: Final = windlass.named("shell").job(argv=["true"])
TEMPLATE: Final = {"name": "t", "jobs": {"one": {"task": "shell", "args": {"argv": ["true"]}}}}
POOL: Final = {
    "provider": "command",
    "max_workers": 2,
    "options": {"launch": ["true"], "terminate": ["true"]},
}
TEXT: Final = b"one\ntwo\n"


There = Callable[[Coroutine[Any, Any, Any]], Awaitable[Any]]


class Elsewhere:
    """A gateway whose calls run in another loop."""

    def __init__(self, gateway: Any, there: There) -> None:
        self._gateway = gateway
        self._there = there

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._gateway, name)
        return lambda *given, **named: self._there(call(*given, **named))


class Hand:
    """A worker that does what a row says, directly at the engine."""

    def __init__(self, services: Services, there: There | None = None) -> None:
        """`there` runs a call in the loop of the engine, if that is not the test's own."""
        gateway = DirectGateway(services.engine, services.files)
        self.gateway: Any = gateway if there is None else Elsewhere(gateway, there)
        self._seq = 0

    async def enrol(self) -> "Hand":
        enrolled = await self.gateway.enrol(EnrolRequest(name="w1", slots=4))
        self.worker, self.incarnation = enrolled.worker, enrolled.incarnation
        return self

    async def sync(self, **said: Any) -> list[Holder]:
        """Returns the attempts that it gets."""
        self._seq += 1
        request = SyncRequest(incarnation=self.incarnation, seq=self._seq, **said)
        given = (await self.gateway.sync(self.worker, request)).jobs
        return [Holder(self.worker, self.incarnation, one.job, one.attempt) for one in given]

    async def end(self, holder: Holder, outcome: str = "completed", result: Any = None) -> None:
        """Reports how an attempt ended, with its log."""
        await self.gateway.append_log(holder, 0, TEXT)
        await self.gateway.end_log(holder, len(TEXT), "committed")
        ended = Finished(holder.job, holder.attempt, outcome, 0, result=result)  # type: ignore[arg-type]
        await self.sync(finished=(ended,))

    async def run(self, outcome: str = "completed", result: Any = None) -> None:
        """Runs one job."""
        (holder,) = await self.sync(want=1)
        await self.end(holder, outcome, result)


PATIENCE_S: Final = 120


class World(NamedTuple):
    """A client, a worker of its scheduler, and a folder."""

    client: AsyncClient
    hand: Hand
    folder: Path


async def a_job_is_submitted_and_ends(world: World) -> Any:
    job: AsyncJob[Any] = await world.client.submit(TRUE)
    before = await job.info()
    await world.hand.run(result={"sum": 3})
    ended = await world.client.job(job.id).wait(PATIENCE_S)
    return (
        before,
        ended,
        await job.result(PATIENCE_S),
        await job.value_of(ended),
        await job.time_spent(),
    )


async def many_jobs_are_listed_canceled_and_deleted(world: World) -> Any:
    client = world.client
    made = await client.submit_many([TRUE, windlass.named("shell").job(argv=["echo", "hi"])])
    mapped = await client.map(windlass.named("windlass.call"), [])
    listed = await client.jobs(2, estimates=True, state=["queued"], queue="default")
    unknown = await refusal(client.jobs(2, state=["none"]))
    first = await made[0].cancel("no longer wanted"), await made[0].cancel()
    rest = await client.cancel(made, "over")
    gone = await made[0].delete()
    return mapped, listed, unknown, first, rest, gone, await client.delete([made[1], 999_999_999])


async def a_job_fails_and_is_retried(world: World) -> Any:
    job = await world.client.submit(TRUE)
    await world.hand.run("failed")
    failure = await job.failure_of(await job.wait(PATIENCE_S))
    again = await job.retry()
    seen = await again.info(), await again.cancel()
    return failure.message, failure.job.state, seen


async def what_got_the_id_of_a_lost_job_or_workflow_is_left_alone(world: World) -> Any:
    client = world.client
    fresh = await client.submit(TRUE)
    lost = await client.submit(TRUE)
    async with client.workflow("w") as block:
        block.submit("shell", argv=["true"])
    for handle in (lost, block):  # as after a loss: what has the id now was made later
        behind = getattr(getattr(handle, "wrapped", handle), "asynchronous", handle)
        assert behind._given_at > 0
        behind._given_at -= 60_000
    calls = (
        lost.info, lost.result, lost.explain, lost.time_spent, lost.cancel, lost.retry, lost.delete,
        partial(lost.download, "a", world.folder / "a"), lambda: _all(lost.logs()),
        partial(client.explain, lost), partial(client.answer, lost, 1),
        partial(client.cancel, [fresh, lost]), partial(client.delete, [fresh, lost]),
        block.info, block.cancel, block.retry, block.reactions, partial(block.wait, PATIENCE_S),
        block.jobs, partial(block.add, [TRUE]),
    )  # fmt: skip
    for call in calls:
        with pytest.raises(Lost, match="was lost: its server lost what was submitted at"):
            await call()
    seen = [(await client.job(one.id).info()).state for one in (fresh, lost)] + [
        (await client.workflow(block.id).info()).state
    ]
    await client.workflow(block.id).cancel()
    return seen, await client.cancel([fresh, lost.id], "over")


async def logs_artifacts_and_uploads_are_read(world: World) -> Any:
    job = await world.client.submit(TRUE)
    (holder,) = await world.hand.sync(want=1)
    kept, fetched = world.folder / "kept", world.folder / "fetched"
    kept.write_bytes(PAYLOAD)
    digest = hashlib.sha256(PAYLOAD).hexdigest()
    await world.hand.gateway.put_artifact(holder, "a b.txt", kept, digest, "text/plain")
    await world.hand.end(holder)
    await job.download("a b.txt", fetched)
    logs = [
        b"".join([chunk async for chunk in job.logs(**choice)])
        for choice in ({}, {"follow": True}, {"tail": 1}, {"since": "1h"}, {"attempt": 1})
    ]
    timed = b"".join([chunk async for chunk in job.logs(timestamps=True)]).decode()
    missing = await refusal(job.download("none", fetched))
    uploaded = await world.client.upload(kept, "u")
    return fetched.read_bytes() == PAYLOAD, logs, timed, missing, uploaded


PAYLOAD: Final = b"x" * 100_000


async def waits_are_explained(world: World) -> Any:
    client = world.client
    job = await client.submit(windlass.named("shell").options(requires="memory>=8TiB"), argv=["a"])
    explained = await client.explain(job), await job.explain()
    await job.cancel()
    by_id = await client.explain_worker(world.hand.worker)
    return explained, by_id, await client.explain_worker("w1"), await client.workers.explain("w1")


async def workflows_are_built_and_ended(world: World) -> Any:
    client = world.client
    async with client.workflow("early", labels={"kind": "a"}, key="early") as block:
        block.submit("shell", argv=["true"])
    running = await refusal(block.wait(0))
    workflow = client.workflow(block.id)
    await workflow.add([TRUE])
    await workflow.add_with_reply([TRUE])
    shown = await workflow.info(), await workflow.jobs()
    await world.hand.run()
    await world.hand.run()
    await world.hand.run("failed")
    ended = await workflow.wait(PATIENCE_S)
    incomplete = await refusal(workflow.complete(PATIENCE_S))
    again = await workflow.retry()
    canceled = await again.cancel("over"), await again.cancel()
    reactions = await workflow.reactions()
    reply = await client.submit_workflow(NewWorkflow(name="late"), [TRUE])
    await client.workflow(reply.workflow or 0).cancel()
    listed = await client.workflows(5, name="early"), await client.workflows(5, label="kind=a")
    return running, shown, ended, incomplete, canceled, reactions, reply.applied, listed


async def signals_are_sent_and_questions_answered(world: World) -> Any:
    client = world.client
    job = await client.submit(TRUE)
    (holder,) = await world.hand.sync(want=1)
    asked = StepRequest(do="ask", key="q", question="well?", schema={"type": "integer"})
    await world.hand.gateway.step(holder, asked)
    await world.hand.sync(finished=(Finished(job.id, 1, "suspended"),))
    questions = await client.questions()
    wrong = await refusal(client.answer(job, "text"))
    answered = await client.answer(job, 7, key="q")
    await job.cancel()
    sent = await client.send("paid", {"by": "card"}, key="k"), await client.send("paid", key="k")
    return questions, wrong, answered, [(one.applied, one.told) for one in sent]


async def workers_are_managed(world: World) -> Any:
    workers, number = world.client.workers, world.hand.worker
    done = [
        await workers.set("w1", {"rack": 7, "spot": None}), await workers.drain(number),
        await workers.drain("w1"), await workers.disable(str(number)), await workers.approve("w1"),
        await workers.enable("w1"),
    ]  # fmt: skip
    unknown = [await refusal(workers.show(one)) for one in ("nobody", 987_654, "a b", "9" * 30)]
    return await workers.list(), await workers.show("w1"), await workers.show(number), done, unknown


async def queues_are_managed(world: World) -> Any:
    queues = world.client.queues
    done = await queues.pause("q"), await queues.pause("q"), await queues.limit("q", max_running=3)
    shown = await queues.show("q")
    wrong = await refusal(queues.pause("q" * 300)), await refusal(queues.limit("q", max=3))
    bad = await refusal(queues.limit("q", max_running=-1)), await refusal(queues.show("none"))
    return done, shown, wrong, bad, await queues.resume("q"), await queues.list()


async def templates_are_kept_and_started(world: World) -> Any:
    templates = world.client.templates
    put = await templates.put("t", TEMPLATE), await templates.put("t", TEMPLATE)
    shown = await templates.list(), await templates.show("t"), await templates.show("t", 1)
    started = await world.client.start_template("t@1", key="once")
    await started.cancel()
    wrong = (
        await refusal(templates.put("t", {"name": "t", "jobs": 7})),
        await refusal(templates.show("t", 9)),
    )
    unknown = await refusal(world.client.start_template("nothing"))
    removed = await templates.remove("t"), await refusal(templates.show("t"))
    return put, shown, wrong, unknown, removed


async def schedules_are_kept_and_run(world: World) -> Any:
    schedules = world.client.schedules
    put = await schedules.put("s", "0 3 * * *", jobs=[{"task": "shell", "args": {"argv": ["a"]}}])
    paused = await schedules.pause("s"), await schedules.pause("s"), await schedules.resume("s")
    ran = await schedules.run("s")
    await world.client.workflow(ran.workflow or 0).cancel()
    shown = await schedules.show("s"), await schedules.list(), await schedules.list("other")
    wrong = await refusal(schedules.put("s", "61 * * * *", template="t"))
    return (
        put,
        paused,
        shown,
        wrong,
        await schedules.remove("s"),
        await refusal(schedules.show("s")),
    )


async def pools_are_managed(world: World) -> Any:
    pools = world.client.pools
    applied = await pools.apply("p", POOL), await pools.apply("p", POOL)
    wrong = await refusal(pools.apply("p", {**POOL, "max_workers": -1}))
    unknown = await refusal(pools.show("none")), await refusal(pools.apply("p", {"name": "q"}))
    planned = await pools.plan(), await pools.plan(workers=2), await refusal(pools.plan(-1))
    costs = await pools.costs("2026-11"), await refusal(pools.costs("November"))
    shown = await pools.list(), await pools.show("p")
    return applied, wrong, unknown, planned, costs, shown, await pools.delete("p")


async def tokens_are_managed(world: World) -> Any:
    tokens = world.client.tokens
    created = await tokens.create("ci", "submitter", namespaces=["default"], expires="1h")
    listed = [one for one in await tokens.list() if one.name == "ci"]
    rotated = await tokens.rotate("ci", grace="1m")
    wrong = await refusal(tokens.create("x", "nobody")), await refusal(tokens.revoke("none"))
    short = await refusal(tokens.create("x", "viewer", expires=0))
    revoked = await tokens.revoke(rotated.info.id), await tokens.revoke(rotated.info.id)
    return created.info, listed, rotated.info, wrong, short, revoked


async def events_are_read_and_followed(world: World) -> Any:
    client = world.client
    job = await client.submit(TRUE)
    await job.cancel()
    own = [event async for event in client.events(job=job.id, kind="job")]
    last = [event async for event in client.events(last=2)]
    by_name = [event.kind async for event in client.events(worker="w1", kind="worker")]
    by_id = [
        event.kind async for event in client.events(worker=str(world.hand.worker), kind="worker")
    ]
    followed = []
    async for event in client.events(follow=True, job=job.id, since="1h"):
        followed.append(event.to)
        if event.to == "canceled":
            break
    wrong = [
        await refusal(_all(client.events(**filters)))
        for filters in ({"jobs": 1}, {"kind": "none"}, {"worker": "nobody"}, {"since": "later"})
    ]
    return own, last, by_name, by_id, followed, wrong


async def many_jobs_are_edited_at_once(world: World) -> Any:
    await world.client.submit_many([TRUE, TRUE])
    where = Where(state=["queued"])
    dry = await world.client.edit_many("cancel", where, dry_run=True)
    raised = await world.client.edit_many("prioritize", where, adjustment=5)
    wrong = await refusal(world.client.edit_many("cancel", Where(state=["none"])))
    return dry, raised, wrong, await world.client.edit_many("cancel", where, reason="over")


async def a_worker_is_removed(world: World) -> Any:
    job = await world.client.submit(TRUE)
    await world.hand.sync(want=1)
    busy = await refusal(world.client.workers.remove("w1"))
    removed = await world.client.workers.remove("w1", force=True)
    await job.cancel()
    of_removed = [event.kind async for event in world.client.events(worker="w1", kind="worker")]
    return busy, removed, of_removed, await world.client.workers.list()


async def refusal(call: Awaitable[Any]) -> Any:
    """What a call that fails says, in all its parts."""
    with pytest.raises(windlass.WindlassError) as refused:
        await call
    return refused.value.code, refused.value.message, refused.value.describe()


async def _all(events: AsyncIterator[Any]) -> list[Any]:
    return [event async for event in events]


Row = Callable[[World], Awaitable[Any]]
# With the methods that each row calls, in an order in which they leave each other alone.
ROWS: Final[dict[Row, str]] = {
    a_job_is_submitted_and_ends: (
        "AsyncClient: submit job; AsyncJob: info wait result value_of time_spent"
    ),
    many_jobs_are_listed_canceled_and_deleted: (
        "AsyncClient: map submit_many jobs cancel delete; AsyncJob: cancel delete"
    ),
    a_job_fails_and_is_retried: "AsyncJob: failure_of retry",
    what_got_the_id_of_a_lost_job_or_workflow_is_left_alone: "AsyncJob: cancel retry delete",
    logs_artifacts_and_uploads_are_read: "AsyncJob: logs download; AsyncClient: upload",
    waits_are_explained: (
        "AsyncClient: explain explain_worker; AsyncJob: explain; AsyncWorkers: explain"
    ),
    workflows_are_built_and_ended: (
        "AsyncClient: workflow workflows submit_workflow; AsyncWorkflowBlock: submit wait; "
        "AsyncWorkflow: info jobs add add_with_reply wait complete cancel retry reactions"
    ),
    signals_are_sent_and_questions_answered: "AsyncClient: send questions answer",
    workers_are_managed: "AsyncWorkers: list show approve drain enable disable set",
    queues_are_managed: "AsyncQueues: list show pause resume limit",
    templates_are_kept_and_started: (
        "AsyncTemplates: list show put remove; AsyncClient: start_template"
    ),
    schedules_are_kept_and_run: "AsyncSchedules: list show put pause resume run remove",
    pools_are_managed: "AsyncPools: list show apply delete plan costs",
    tokens_are_managed: "AsyncTokens: list create rotate revoke",
    events_are_read_and_followed: "AsyncClient: events",
    many_jobs_are_edited_at_once: "AsyncClient: edit_many",
    a_worker_is_removed: "AsyncWorkers: remove",
}


def covered() -> set[str]:
    """The methods that rows call."""
    groups = (group.split(": ") for text in ROWS.values() for group in text.split("; "))
    return {f"{kind}.{name}" for kind, names in groups for name in names.split()}


# Ways to a scheduler


@asynccontextmanager
async def over_http(store: str, folder: Path) -> AsyncIterator[World]:
    """A client of a server, with a token of an admin."""
    async with running_server(store, blobs=f"file://{folder / 'blobs'}") as server:
        made = await server.services.access.create_token(ACTOR, Role.ADMIN)
        service = Service(Transport(server.address, made.secret))
        async with AsyncClient(service=service) as client:
            yield World(client, await Hand(server.services).enrol(), folder)


@asynccontextmanager
async def embedded(store: str, folder: Path) -> AsyncIterator[World]:
    """A client with the engine in this process."""
    blobs = f"file://{folder / 'blobs'}"
    file = store.removeprefix("sqlite:///")
    async with windlass.AsyncClient.embedded(file, workers=0, blobs=blobs) as client:
        calls = client.service.transport
        assert isinstance(calls, InProcess)
        services = await calls.services()
        for name in ("admin-1", ACTOR):  # those of the server, whose events are in its log
            await services.access.create_token(name, Role.ADMIN)
        yield World(client, await Hand(services).enrol(), folder)


@asynccontextmanager
async def blocking_over_http(store: str, folder: Path) -> AsyncIterator[World]:
    """A blocking client of a server, with a token of an admin."""
    async with running_server(store, blobs=f"file://{folder / 'blobs'}") as server:
        made = await server.services.access.create_token(ACTOR, Role.ADMIN)
        client: Any = Awaited(windlass.Client(server.address, made.secret))
        try:
            yield World(client, await Hand(server.services).enrol(), folder)
        finally:
            await client.close()


@asynccontextmanager
async def blocking_embedded(store: str, folder: Path) -> AsyncIterator[World]:
    """A blocking client with the engine in its thread, where the worker's calls go as well."""
    blobs = f"file://{folder / 'blobs'}"
    file = store.removeprefix("sqlite:///")
    client = await asyncio.to_thread(  # noqa: TID251
        windlass.Client.embedded, file, workers=0, blobs=blobs
    )
    calls = client.asynchronous.service.transport
    assert isinstance(calls, InProcess)

    async def there(work: Coroutine[Any, Any, T]) -> T:
        return await asyncio.to_thread(client.run, work)  # noqa: TID251

    try:
        services = await there(calls.services())
        for name in ("admin-1", ACTOR):
            await there(services.access.create_token(name, Role.ADMIN))
        hand = Hand(services, there)
        awaitable: Any = Awaited(client)
        yield World(awaitable, await hand.enrol(), folder)
    finally:
        await asyncio.to_thread(client.close)  # noqa: TID251


Way = Callable[[str, Path], AbstractAsyncContextManager[World]]
WAYS: Final[dict[str, Way]] = {
    "server": over_http,
    "embedded": embedded,
    "blocking server": blocking_over_http,
    "blocking embedded": blocking_embedded,
}


async def answers_of(way: Way, store: str, folder: Path) -> dict[str, Any]:
    """Goes through all rows; returns what each was answered, without what time and chance make."""
    found: dict[str, Any] = {}
    async with way(store, folder) as world:
        for row in ROWS:
            found[row.__name__] = plain(await row(world))
    return found


ACTOR: Final = "program"  # what an embedded client calls itself is reserved
NUMBERS: Final = re.compile(r"\d{4,}")
TIMES: Final = re.compile(r"\d{4}-\d\d-\d\d[T ][\d:.]+Z?|\b\d+(\.\d+)? ?(ms|s|min|h)\b")
BY_CHANCE: Final = frozenset({"digest", "incarnation", "key"})
# A loop of the scheduler computes them, sooner or later.
FORECASTS: Final = frozenset({"estimated_start", "estimated_end", "statistics"})


def plain(answer: Any) -> Any:
    """Returns an answer as plain values; times, long numbers and ids look the same."""
    return _same(msgspec.to_builtins(answer, enc_hook=vars))


def _same(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: type(one).__name__ if key in BY_CHANCE else _same(one)
            for key, one in value.items()
            if key not in FORECASTS
        }
    if isinstance(value, list | tuple):
        return [_same(one) for one in value]
    if isinstance(value, str):
        return NUMBERS.sub("#", TIMES.sub("TIME", value.replace(OWN.name, ACTOR)))
    if isinstance(value, float) or (type(value) is int and value > 999):
        return "#"
    return value


def _is_resource(one: object) -> bool:
    return isinstance(one, type) and one.__name__.startswith("Async")


def differences(one: Any, other: Any, place: str) -> Iterator[str]:
    """Yields where two answers differ."""
    if isinstance(one, dict) and isinstance(other, dict) and one.keys() == other.keys():
        for key in one:
            yield from differences(one[key], other[key], f"{place}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (inner, of_other) in enumerate(zip(one, other, strict=True)):
            yield from differences(inner, of_other, f"{place}[{number}]")
    elif one != other:
        yield f"{place}: {one!r} and {other!r}"


@contextmanager
def noted_calls() -> Iterator[set[str]]:
    """Notes the names of the functions of clients that this thread calls."""
    called: set[str] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and "/windlass/client/" in frame.f_code.co_filename:
            called.add(frame.f_code.co_qualname)

    sys.setprofile(note)
    try:
        yield called
    finally:
        sys.setprofile(None)


def _compare(stores: dict[str, str], folder: Path) -> None:
    answers = {}
    for name, way in WAYS.items():
        (folder / name).mkdir()
        with noted_calls() as called:
            answers[name] = run(answers_of(way, stores[name], folder / name))
        if not name.startswith("blocking"):  # those call in another thread
            assert covered() - called == set()
    first, *others = answers.values()
    for other in others:
        assert "\n".join(differences(first, other, "")) == ""


def test_a_server_and_an_embedded_client_answer_alike_on_sqlite(tmp_path: Path) -> None:
    _compare({name: f"sqlite:///{tmp_path}/{name}.db" for name in WAYS}, tmp_path)


def test_a_server_and_an_embedded_client_answer_alike_on_postgresql(
    postgres_server: PostgresServer, tmp_path: Path
) -> None:
    made = {name: postgres_server.create_database() for name in WAYS}
    try:
        for dsn in made.values():
            run(upgrade_store(dsn))
        _compare(made, tmp_path)
    finally:
        for dsn in made.values():
            postgres_server.drop_database(dsn)


def test_every_public_method_has_a_row() -> None:
    assert {one for one in vars(resources).values() if _is_resource(one)} <= set(CLASSES)
    methods = {
        f"{kind.__name__}.{name}"
        for kind in CLASSES
        for name in vars(kind)
        if not name.startswith("_")
    }
    assert methods - covered() - ASK_NOTHING - set(ELSEWHERE) == set()
    assert {*covered(), *ASK_NOTHING, *ELSEWHERE} - methods == set()
