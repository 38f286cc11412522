"""The description of the interface is valid, and what it allows never breaks the server."""

from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from tests.support.running import run
from tests.support.running_server import RunningServer, job, running_server

EXAMPLES = 4
FEW = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


async def _describe() -> dict[str, Any]:
    async with running_server() as server:
        description: dict[str, Any] = (await server.admin.get("/openapi.json")).json()
        return description


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return run(_describe())


def _collect(operation: Any, cases: list[Any]) -> None:
    @FEW
    @given(case=operation.as_strategy())
    def collect(case: Any) -> None:
        cases.append(case)

    collect()


def _cases(description: dict[str, Any]) -> list[Any]:
    """A few requests for each operation, the same in every run."""
    cases: list[Any] = []
    for found in schemathesis.openapi.from_dict(description).get_all_operations():
        operation = found.ok()  # type: ignore[union-attr]
        _collect(operation, cases)
    return cases


def test_the_description_is_valid_and_asks_for_a_token(description: dict[str, Any]) -> None:
    schemathesis.openapi.from_dict(description).validate()
    assert description["openapi"].startswith("3.")
    assert description["security"] == [{"token": []}]
    assert "/api/v1/jobs/{job}/wait" in description["paths"]


def test_errors_look_as_they_are_described(description: dict[str, Any]) -> None:
    shape = description["components"]["schemas"]["Error"]["properties"]["error"]
    for path, operations in description["paths"].items():
        for operation in operations.values():
            content = operation["responses"]["default"]["content"]["application/json"]
            assert content["schema"] == {"$ref": "#/components/schemas/Error"}, path

    async def scenario() -> None:
        async with running_server() as server:
            refused = await server.admin.post("/api/v1/jobs", json={"jobs": [{"task": 3}]})
            error = refused.json()["error"]
            assert set(shape["required"]) <= set(error) <= set(shape["properties"])

    run(scenario())


class Target(NamedTuple):
    """A server where everything that addresses can name exists, and who may ask for it."""

    server: RunningServer
    worker: httpx.AsyncClient
    incarnation: int
    known: dict[str, Any]


async def _prepare(server: RunningServer) -> Target:
    worker = await server.worker(slots=2)
    flow = {"jobs": [job(name="x"), job()], "workflow": {"name": "w"}}
    made = (await server.admin.post("/api/v1/jobs", json=flow)).json()
    (given,) = (await worker.sync(want=1)).jobs
    for path, body in (
        ("templates/known", {"body": {"name": "t", "jobs": {"a": {"run": ["true"]}}}}),
        ("schedules/known", {"cron": "0 0 * * *", "jobs": [job()]}),
        ("pools/known", {"provider": "command", "options": {"launch": ["x"], "terminate": ["x"]}}),
    ):
        reply = await server.admin.put(f"/api/v1/{path}", json=body)
        assert reply.status_code < 300, reply.text
    known = {
        "job": given.job, "attempt": given.attempt, "worker": worker.id,
        "workflow": made["workflow"], "name": "known",
    }  # fmt: skip
    return Target(server, await server.http(worker.token), worker.incarnation, known)


async def _provoke(target: Target, case: Any, aimed: bool) -> None:
    """Send a case as it is, or to what exists: most of what is made up is only not found."""
    sent = case.as_transport_kwargs(base_url=target.server.address)
    if aimed:
        named = {**(case.path_parameters or {}), **target.known}
        path = case.path.format(**{name: quote(str(value)) for name, value in named.items()})
        sent["url"] = target.server.address + path
    client = target.server.admin
    if "/attempts/" in case.path or case.path.endswith("/sync"):
        client = target.worker
        sent["params"] = {**(sent.get("params") or {}), "incarnation": target.incarnation}
    reply = await _send(client, sent)
    assert reply is None or reply.status_code < 500, (sent, reply.text)


@pytest.mark.parametrize("store", ["memory:", "sqlite"])
def test_no_request_that_the_description_allows_breaks_the_server(
    description: dict[str, Any], store: str, tmp_path: Path
) -> None:
    cases = _cases(description)
    assert len(cases) >= len(description["paths"])

    async def scenario() -> None:
        address = f"sqlite://{tmp_path}/windlass.db" if store == "sqlite" else store
        async with running_server(address) as server:
            target = await _prepare(server)
            for case in cases:
                await _provoke(target, case, False)
                if case.method != "DELETE":
                    await _provoke(target, case, True)

    run(scenario())


async def _send(client: httpx.AsyncClient, sent: dict[str, Any]) -> httpx.Response | None:
    """Send a case; None if it is no HTTP at all. A stream that does not end is left."""
    query = {**(sent.get("params") or {}), "follow": "false", "timeout": "0"}
    body = {name: sent[name] for name in ("json",) if name in sent}
    if sent.get("data") is not None:
        body["content"] = sent["data"]
    try:
        return await client.request(sent["method"], sent["url"], params=query, **body)
    except (httpx.InvalidURL, httpx.LocalProtocolError, UnicodeEncodeError, TypeError):
        return None
