"""Nothing holds the event loop for long, whatever one namespace asks for."""

import asyncio
import sys
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from tests.server.holds.rows import BOUNDED, LARGE, Large
from tests.server.holds.world import Bystander, Client, client_of, server_on, small_things
from tests.server.rights.rows import Row
from tests.support.forms import LONG
from tests.support.running import run
from windlass.domain.access.rights import Role
from windlass.server.app import ROUTES
from windlass.server.metrics.holds import MAX_HOLD_S

pytestmark = pytest.mark.slow

NO_TOKEN: Final = 999  # so that the caller keeps its own
# They last as long as the client wants, are called by the one that looks on, or would end it.
LEFT_OUT: Final = frozenset(
    {
        "GET /api/v1/live",
        "POST /api/v1/workers/{worker:int}/sync",
        "POST /api/v1/workers/{worker:int}/leave",
        "POST /auth/session",
        "POST /auth/logout",
    }
)
PATIENCE_S: Final = 20.0  # for /healthz, by the clock: others use these processors too


def test_every_route_has_its_largest_input() -> None:
    routes = {f"{route.method} {route.path}" for route in ROUTES}
    assert routes == LARGE.keys() | BOUNDED.keys()


@pytest.mark.parametrize("kind", ["sqlite", "postgres"] if LONG else ["sqlite"])
def test_no_route_and_no_loop_holds_the_event_loop(
    kind: str, tmp_path: Path, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]
) -> None:
    store = f"sqlite://{tmp_path}/windlass.db"
    if kind == "postgres":
        store = request.getfixturevalue("postgres_dsn")
    with server_on(store, tmp_path) as (address, token):
        held, waits, wrong = run(_drive(address, token))
    if LONG:
        with capsys.disabled():
            sys.stdout.write(_table(kind, held, waits))
    assert not wrong, "\n".join(wrong)
    assert {work: seconds for work, seconds in held.items() if seconds > MAX_HOLD_S} == {}
    assert len(held) > len(LARGE) / 2  # so many that the measurement is there
    assert max(waits) < PATIENCE_S


async def _drive(address: str, token: str) -> tuple[Mapping[str, float], list[float], list[str]]:
    async with client_of(address, token) as client, client_of(address, token) as other:
        bystander = Bystander(other)
        values = await bystander.begin()
        looking = asyncio.ensure_future(bystander.look_on())
        try:
            wrong = await _call_all(client, bystander.worker, values)
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        await bystander.end()
        return await client.longest(), bystander.waits, wrong


async def _call_all(client: Client, worker: Client, values: dict[str, Any]) -> list[str]:
    """Calls every route; returns what was answered that should not be."""
    values["plain"] = 0
    await small_things(client)
    big = {role: await client.limited(role, "big") for role in (Role.SUBMITTER, Role.OPERATOR)}
    wrong: list[str] = []
    for route, inputs in LARGE.items():
        for number, what in enumerate(inputs):
            who = worker if "/attempts/" in route else big.get(what.role, client)
            status, answer = await who.large(route, what, values)
            if status >= 400:
                wrong.append(f"{route} #{number}: {status} {answer[:300]!r}")
            elif route == "POST /api/v1/jobs":
                _learn(values, answer)
    for route, row in BOUNDED.items():
        if route in LEFT_OUT:
            continue
        who = worker if "/attempts/" in route else client
        what = Large(partial(_body, row), row.query, {**row.values, "token": NO_TOKEN})
        status, answer = await who.large(route, what, values)
        if status in (401, 403) or status >= 500:
            wrong.append(f"{route}: {status} {answer[:300]!r}")
    return wrong


def _body(row: Row, values: Mapping[str, Any]) -> Any:
    return _filled(row.body, values)


def _filled(body: Any, values: Mapping[str, Any]) -> Any:
    """Replaces `$name` by a value."""
    if isinstance(body, str) and body.startswith("$"):
        return values.get(body[1:], body)
    if isinstance(body, list):
        return [_filled(item, values) for item in body]
    if isinstance(body, Mapping):
        return {key: _filled(item, values) for key, item in body.items()}
    return body


def _learn(values: dict[str, Any], answer: bytes) -> None:
    made = msgspec.json.decode(answer)
    if not values["plain"]:
        values |= {"first": made["ids"][0], "plain": len(made["ids"])}
    if made.get("workflow"):
        values["workflow"] = made["workflow"]


def _table(kind: str, held: Mapping[str, float], waits: list[float]) -> str:
    """The longest step of each route and loop, in milliseconds of processor time."""
    lines = [f"{seconds * 1000:8.1f} ms  {work}" for work, seconds in
             sorted(held.items(), key=lambda one: -one[1])]  # fmt: skip
    others = f"longest wait of another caller for /healthz: {max(waits) * 1000:.0f} ms\n"
    return f"\n{kind}\n" + "\n".join(lines) + "\n" + others
