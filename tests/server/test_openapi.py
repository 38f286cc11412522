"""The description of the interface is valid, and what it allows never breaks the server."""

from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings

from tests.support.running import run
from tests.support.running_server import running_server

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


def test_no_request_that_the_description_allows_breaks_the_server(
    description: dict[str, Any],
) -> None:
    cases = _cases(description)
    assert len(cases) >= len(description["paths"])

    async def scenario() -> None:
        async with running_server() as server:
            await server.submit()
            for case in cases:
                sent = case.as_transport_kwargs(base_url=server.address)
                reply = await _send(server.admin, sent)
                assert reply is None or reply.status_code < 500, (sent, reply.text)

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
