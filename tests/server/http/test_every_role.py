"""Every operation of the description, by every kind of caller: whatever is sent, the answer is no
5xx, comes soon, and looks as described.

`make fuzz-api` runs the long form: more rounds with other requests, and on PostgreSQL too.
"""

import asyncio
import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import httpx
import jsonschema_rs
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.generation import GenerationMode

from tests.support.forms import LONG, by_form
from tests.support.running import run
from tests.support.running_server import JSON, RunningServer, job, running_server
from windlass.assembly.stores import upgrade_store
from windlass.domain.access.rights import Role
from windlass.server.http.openapi import describe
from windlass.server.routes import ALL

ROUNDS: Final = by_form(1, int(os.environ.get("FUZZ_ROUNDS", "10")))
EXAMPLES: Final = by_form(1, 6)  # of each operation, kind of data and round
SOON_SECONDS: Final = 5.0
STORES: Final = ("memory:", "sqlite", "postgres") if LONG else ("memory:", "sqlite")
FEW: Final = settings(
    max_examples=EXAMPLES,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
# A request that waits must not: of a stream the beginning is enough.
AT_ONCE: Final = {"follow": "false", "timeout": "0", "wait": "0"}
NOT_HTTP: Final = (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeEncodeError, TypeError)
STRANGERS: Final = ("anonymous", "unknown token")
STRONGEST: Final = "admin ()"
SOME: Final = ("worker", "submitter ()", STRONGEST, STRONGEST)
LADDER: Final = (Role.VIEWER, Role.SUBMITTER, Role.OPERATOR, Role.ADMIN)


class Answers:
    """What the description says about answers."""

    def __init__(self, description: dict[str, Any]) -> None:
        self._description = description
        self._validators: dict[tuple[str, str, str], Any] = {}

    def check(self, case: Any, reply: httpx.Response) -> None:
        """Fails unless the answer has a described status, type and form."""
        operation = self._description["paths"][case.path][case.method.lower()]
        said = f"{case.method} {reply.url}: {reply.status_code} {reply.text[:500]}"
        described = operation["responses"]
        status = str(reply.status_code)
        assert status in described or reply.status_code >= 400, said
        place = status if status in described else "default"
        if "content" not in described[place]:
            assert (reply.status_code, reply.content) == (204, b""), said
            return
        ((kind, content),) = described[place]["content"].items()
        assert reply.headers["content-type"].partition(";")[0] == kind, said
        if kind == JSON["Content-Type"]:
            key = (case.path, case.method, place)
            if key not in self._validators:
                whole = {**content["schema"], "components": self._description["components"]}
                self._validators[key] = jsonschema_rs.validator_for(whole)
            for error in self._validators[key].iter_errors(reply.json()):
                pytest.fail(f"{said}\n{error.message}")


class Target(NamedTuple):
    """A server where everything that addresses can name exists, and who may ask for it."""

    server: RunningServer
    callers: dict[str, httpx.AsyncClient]  # the most powerful last
    incarnation: int
    known: dict[str, Any]


async def _prepare(server: RunningServer) -> Target:
    worker = await server.worker(slots=2)
    flow = {"jobs": [job(name="x"), job()], "workflow": {"name": "w"}}
    made = (await server.admin.post("/api/v1/jobs", json=flow)).json()
    (given_,) = (await worker.sync(want=1)).jobs
    for path, body in (
        ("templates/known", {"body": {"name": "t", "jobs": {"a": {"run": ["true"]}}}}),
        ("schedules/known", {"cron": "0 0 * * *", "jobs": [job()]}),
        ("pools/known", {"provider": "command", "options": {"launch": ["x"], "terminate": ["x"]}}),
    ):
        reply = await server.admin.put(f"/api/v1/{path}", json=body)
        assert reply.status_code < 300, reply.text
    pending = await server.http(None)
    enrolled = await pending.post("/api/v1/workers/enrol", json={"name": "pending"})
    callers = {
        "anonymous": await server.http(None),
        "unknown token": await server.http("wl_unknown"),
        "pending worker": await server.http(enrolled.json()["token"]),
        "worker": await server.http(worker.token),
    }
    for role in LADDER:
        for namespaces in ((), ("default",), ("other",)):
            callers[f"{role} {namespaces}"] = await server.role(role, *namespaces)
    callers[STRONGEST] = callers.pop(STRONGEST)
    known = {
        "job": given_.job, "attempt": given_.attempt, "worker": worker.id, "source": given_.job,
        "workflow": made["workflow"], "name": "known", "incarnation": worker.incarnation,
    }  # fmt: skip
    return Target(server, callers, worker.incarnation, known)


def _collect(operation: Any, mode: GenerationMode, number: int) -> list[Any]:
    cases: list[Any] = []

    @seed(number)
    @FEW
    @given(case=operation.as_strategy(generation_mode=mode))
    def collect(case: Any) -> None:
        cases.append(case)

    try:
        collect()
    except Unsatisfiable:
        assert mode is GenerationMode.NEGATIVE, operation.label  # nothing can be wrong with it
    return cases


def _operations(description: dict[str, Any]) -> Iterator[Any]:
    """All operations, those that take away last."""
    found = [
        one.ok()  # type: ignore[union-attr]
        for one in schemathesis.openapi.from_dict(description).get_all_operations()
    ]
    yield from sorted(found, key=_takes_away)


def _takes_away(operation: Any) -> bool:
    return operation.method.upper() == "DELETE" or str(operation.path).endswith("/rotate")


@lru_cache(1)
def _cases(number: int) -> list[tuple[Any, list[Any]]]:
    """The requests of one round, for each operation."""
    description = describe(ALL, "1")
    return [
        (operation, [c for mode in GenerationMode for c in _collect(operation, mode, number)])
        for operation in _operations(description)
    ]


async def _ask(target: Target, answers: Answers, caller: str, case: Any, aimed: bool) -> int:
    """Sends a case as it is, or to what exists: most of what is made up is only not found."""
    sent = case.as_transport_kwargs(base_url=target.server.address)
    params = {**(sent.get("params") or {}), **AT_ONCE}
    if aimed:
        named = {**(case.path_parameters or {}), **target.known}
        path = case.path.format(**{name: quote(str(value)) for name, value in named.items()})
        sent["url"] = target.server.address + path
        params["incarnation"] = target.incarnation
    body: dict[str, Any] = {}
    if sent.get("json") is not None:
        body["json"] = _without_waits(sent["json"])
    elif sent.get("data") is not None:
        body = {"content": sent["data"], "headers": JSON}
    client = target.callers[caller]
    try:
        async with asyncio.timeout(SOON_SECONDS):
            reply = await client.request(sent["method"], sent["url"], params=params, **body)
    except NOT_HTTP:
        return 0
    assert reply.status_code < 500, (caller, sent, reply.text)
    answers.check(case, reply)
    return reply.status_code


def _without_waits(body: Any) -> Any:
    return {**body, "wait_ms": 0} if isinstance(body, dict) and "wait_ms" in body else body


async def _try_all(server: RunningServer, number: int, some: bool) -> int:
    """Sends requests of every caller to every operation; returns how many were answered."""
    description = (await server.admin.get("/openapi.json")).json()
    target, answers, answered = await _prepare(server), Answers(description), 0
    callers = SOME if some else tuple(target.callers)
    for operation, cases in _cases(number):
        is_open = operation.definition.raw.get("security") == []
        for turn, caller in enumerate(callers):
            if _takes_away(operation) and caller == STRONGEST:
                continue  # what the others ask for, or ask with
            for case, aimed in _chosen(cases, turn):
                status = await _ask(target, answers, caller, case, aimed)
                answered += status > 0
                if caller in STRANGERS and not is_open:
                    assert status in (0, 400, 401, 404, 405, 415), (operation.label, status)
    assert (await server.admin.get("/api/v1/jobs")).status_code == 200
    return answered


def _chosen(cases: list[Any], turn: int) -> list[tuple[Any, bool]]:
    """All cases, each as it is and to what exists; in the short form one or the other of one."""
    if LONG:
        return [(case, aimed) for case in cases for aimed in (False, True)]
    return [(cases[turn // 2 % len(cases)], turn % 2 == 1)]


@pytest.mark.parametrize("store", STORES)
def test_no_request_of_any_caller_breaks_the_server(
    store: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    async def scenario(number: int) -> int:
        address = store
        if store == "sqlite":
            address = f"sqlite://{tmp_path}/windlass-{number}.db"
        elif store == "postgres":
            address = request.getfixturevalue("postgres_server").create_database()
            await upgrade_store(address)
        async with running_server(address) as server:
            return await _try_all(server, number, some=store != "memory:" and not LONG)

    for number in range(ROUNDS):
        assert run(scenario(number)) > 2 * len(ALL)
