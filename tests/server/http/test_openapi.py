"""The description of the interface is valid; `test_every_role.py` tries what it allows."""

from typing import Any

import pytest
import schemathesis

from tests.support.running import run
from tests.support.running_server import running_server


async def _describe() -> dict[str, Any]:
    async with running_server() as server:
        description: dict[str, Any] = (await server.admin.get("/openapi.json")).json()
        return description


@pytest.fixture(scope="module")
def description() -> dict[str, Any]:
    return run(_describe())


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
