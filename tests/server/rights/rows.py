"""One row for each route, and what a token that is limited to other namespaces is answered.

A new route without a row fails the test. A row says how to call its route so that somebody who
may gets what was asked for.
"""

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, NamedTuple

from tests.server.rights.callers import OWN, Caller
from tests.server.rights.world import MARK, SCHEDULE, TEMPLATE, World
from tests.server.routes.test_pools import POOL
from tests.support.running_server import job
from windlass.domain.access.rights import Role
from windlass.domain.rows.steps import StepKind, StepRow, StepState
from windlass.engine.fleet.enrolment import Enrolment

HIDDEN: Final = 404  # what belongs to others does not exist
REFUSED: Final = 403  # the caller names a namespace that is not its own
SHOWN: Final = 200  # without what belongs to others

Values = Mapping[str, Any]
NOTHING: Final[Values] = {}
Fresh = Callable[[World, Caller], Awaitable[Values]]


OTHER_ARGS: Final[Values] = {"args": {"argv": ["false"]}}


class Row(NamedTuple):
    """How to call a route. `fresh` makes what a call that succeeds uses up."""

    route: str
    foreign: int = SHOWN
    query: Values = NOTHING
    body: Any = None
    values: Values = NOTHING
    fresh: Fresh | None = None
    otherwise: int = 0  # the answer to those who may; 0: success
    of_others: bool = False  # the job belongs to somebody else than the caller
    note: str = ""

    @property
    def title(self) -> str:
        return f"{self.route} {self.note}".strip()


async def _queued(world: World, caller: Caller) -> Values:
    return {"job": await world.submit(caller)}


async def _ended(world: World, caller: Caller) -> Values:
    number = await world.submit(caller)
    await world.server.services.engine.jobs.cancel([number], "x", "admin-1")
    return {"job": number}


async def _foreign_queued(world: World, caller: Caller) -> Values:
    return {"job": await world.submit()}


async def _foreign_ended(world: World, caller: Caller) -> Values:
    number = await world.submit()
    await world.server.services.engine.jobs.cancel([number], "x", "admin-1")
    return {"job": number}


async def _workflow(world: World, caller: Caller) -> Values:
    return {"workflow": await world.workflow(caller)}


async def _foreign_workflow(world: World, caller: Caller) -> Values:
    return {"workflow": await world.workflow()}


async def _ended_workflow(world: World, caller: Caller) -> Values:
    number = await world.workflow(caller)
    await world.server.services.engine.workflows.cancel(number, "x", "admin-1")
    return {"workflow": number}


async def _foreign_ended_workflow(world: World, caller: Caller) -> Values:
    number = await world.workflow()
    await world.server.services.engine.workflows.cancel(number, "x", "admin-1")
    return {"workflow": number}


async def _asking(world: World, caller: Caller) -> Values:
    return await _with_question(world, await world.submit(caller))


async def _foreign_asking(world: World, caller: Caller) -> Values:
    return await _with_question(world, await world.submit())


async def _with_question(world: World, number: int) -> Values:
    pending = StepRow(number, "q", StepKind.QUESTION, StepState.PENDING, 1, 0, namespace=OWN)
    store = world.server.services.engine.store
    await store.transact(lambda tx: tx.steps.put(pending))
    return {"job": number}


async def _blocked(world: World, caller: Caller) -> Values:
    return {"job": await world.submit(unblock="manual")}


async def _template(world: World, caller: Caller) -> Values:
    await world.put(f"/api/v1/templates/t?namespace={OWN}", {"body": TEMPLATE})
    return {}


async def _schedule(world: World, caller: Caller) -> Values:
    await world.put(f"/api/v1/schedules/s?namespace={OWN}", SCHEDULE)
    return {}


async def _pool(world: World, caller: Caller) -> Values:
    await world.put("/api/v1/pools/p", POOL)
    return {}


async def _token(world: World, caller: Caller) -> Values:
    access = world.server.services.access
    made = await access.create_token(f"spare {world.number()}", Role.VIEWER, (OWN,))
    return {"token": made.token.id}


async def _new_name(world: World, caller: Caller) -> Values:
    return {"new": f"made {world.number()}"}


async def _spare_worker(world: World, caller: Caller) -> Values:
    enrolment = Enrolment(name=f"spare-{world.number()}")
    return {"worker": (await world.server.services.engine.workers.enrol(enrolment)).worker}


async def _next_sync(world: World, caller: Caller) -> Values:
    worker = caller.worker
    assert worker is not None
    values = {"worker": worker.id, "incarnation": worker.incarnation}
    return {**values, "seq": 1_000 + world.number()}


IN_OWN: Final = {"namespace": OWN}
ATTEMPT: Final = "/api/v1/workers/{worker:int}/jobs/{job:int}/attempts/{attempt:int}"
HELD: Final = {"incarnation": "$incarnation"}
BYTES: Final = b"bytes"
FILE: Final = {"sha256": hashlib.sha256(BYTES).hexdigest(), "size": len(BYTES)}

READING: Final = (
    Row("GET /healthz"),
    Row("GET /readyz"),
    Row("GET /metrics"),
    Row("GET /openapi.json"),
    Row("GET /api/v1/plugins"),
    Row("GET /api/v1/jobs"),
    Row("GET /api/v1/jobs", REFUSED, IN_OWN, note="of a namespace"),
    Row("GET /api/v1/jobs/count"),
    Row("GET /api/v1/jobs/count", REFUSED, IN_OWN, note="of a namespace"),
    Row("GET /api/v1/jobs/some", query={"id": [1]}),
    Row("GET /api/v1/jobs/{job:int}", HIDDEN),
    Row("GET /api/v1/jobs/{job:int}/wait", HIDDEN, {"timeout": 0}),
    Row("POST /api/v1/jobs/wait", HIDDEN, body={"ids": ["$job"], "timeout": 0}),
    Row("GET /api/v1/jobs/{job:int}/events", HIDDEN),
    Row("GET /api/v1/jobs/{job:int}/explain", HIDDEN),
    Row("GET /api/v1/jobs/{job:int}/explain/matrix", HIDDEN),
    Row("GET /api/v1/jobs/{job:int}/chain", HIDDEN),
    Row("GET /api/v1/jobs/{job:int}/reproduce", HIDDEN),
    Row("GET /api/v1/jobs/{job:int}/time", HIDDEN),
    Row("GET /api/v1/jobs/{job:int}/log", HIDDEN),
    Row("GET /api/v1/jobs/{job:int}/log", HIDDEN, {"wait": 0}, note="in parts"),
    Row("GET /api/v1/jobs/{job:int}/log/lines", HIDDEN),
    Row("GET /api/v1/jobs/{job:int}/log/search", HIDDEN, {"text": "x"}),
    Row("GET /api/v1/jobs/{job:int}/stack", HIDDEN, otherwise=409),
    Row("GET /api/v1/jobs/{job:int}/artifacts", HIDDEN, values={"job": "$source"}),
    Row(
        "GET /api/v1/jobs/{job:int}/artifacts/{name:path}",
        HIDDEN,
        values={"job": "$source", "name": "file"},
    ),
    Row("GET /api/v1/questions"),
    Row("GET /api/v1/overview"),
    Row("GET /api/v1/overview", REFUSED, IN_OWN, note="of a namespace"),
    Row("GET /api/v1/attention"),
    Row("GET /api/v1/attention", REFUSED, IN_OWN, note="of a namespace"),
    Row("GET /api/v1/namespaces"),
    Row("GET /api/v1/names"),
    Row("GET /api/v1/events", query={"follow": "false"}),
    Row("GET /api/v1/templates"),
    Row("GET /api/v1/templates", REFUSED, IN_OWN, note="of a namespace"),
    Row("GET /api/v1/templates/{name:str}", REFUSED, IN_OWN, values={"name": "t"}, fresh=_template),
    Row("GET /api/v1/schedules"),
    Row("GET /api/v1/schedules/{name:str}", REFUSED, IN_OWN, values={"name": "s"}, fresh=_schedule),
    Row("GET /api/v1/workflows"),
    Row("GET /api/v1/workflows/{workflow:int}", HIDDEN),
    Row("GET /api/v1/workflows/{workflow:int}/jobs", HIDDEN),
    Row("GET /api/v1/workflows/{workflow:int}/wait", HIDDEN, {"timeout": 0}),
    Row("GET /api/v1/workflows/{workflow:int}/reactions", HIDDEN),
    Row("GET /api/v1/workflows/{workflow:int}/graph", HIDDEN),
    Row("GET /api/v1/workflows/{workflow:int}/graph/states", HIDDEN),
    Row("GET /api/v1/workflows/{workflow:int}/graph/jobs", HIDDEN),
    Row("GET /api/v1/workflows/{workflow:int}/progress", HIDDEN),
    Row("GET /api/v1/workflows/{workflow:int}/timeline", HIDDEN),
    Row("GET /api/v1/workflows/compare", HIDDEN, {"a": "$workflow", "b": "$workflow"}),
    Row("GET /api/v1/workers"),
    Row("GET /api/v1/workers/{worker:str}"),
    Row("GET /api/v1/workers/{worker:str}/explain"),
    Row("GET /api/v1/workers/{worker:str}/history"),
    Row("GET /api/v1/namespaces/loads"),
    Row("GET /api/v1/fleet"),
    Row("GET /api/v1/fleet/{name:str}", values={"name": "holder"}),
    Row("GET /api/v1/tasks"),
    Row("GET /api/v1/fuzz"),
    # This server shows no solver.
    Row("GET /api/v1/fuzz/{solver:str}", values={"solver": "s"}, otherwise=404),
    Row("GET /api/v1/fuzz/{solver:str}/coverage", values={"solver": "s"}, otherwise=404),
    Row("GET /api/v1/fuzz/{solver:str}/statistics", values={"solver": "s"}, otherwise=404),
    Row(
        "GET /api/v1/fuzz/{solver:str}/reached/{commit:str}",
        values={"solver": "s", "commit": "c"},
        otherwise=404,
    ),
    Row(
        "GET /api/v1/fuzz/{solver:str}/report/{page:str}",
        values={"solver": "s", "page": "index.html"},
        otherwise=404,
    ),
    *(
        Row(
            f"GET /api/v1/fuzz/{{solver:str}}/findings/{{finding:str}}{what}",
            values={"solver": "s", "finding": "f"},
            otherwise=404,
        )
        for what in ("", "/input")
    ),
    Row("GET /api/v1/queues"),
    Row("GET /api/v1/pools"),
    Row("GET /api/v1/pools/plan"),
    Row("GET /api/v1/pools/plan/jobs", query={"shape": [1]}),
    Row("GET /api/v1/pools/costs"),
    Row("GET /api/v1/pools/{name:str}", values={"name": "p"}, fresh=_pool),
    Row("GET /api/v1/pools/{name:str}/history", values={"name": "p"}, fresh=_pool),
)

CHANGING: Final = (
    Row("POST /api/v1/jobs", body={"jobs": [job()]}),
    Row("POST /api/v1/jobs", REFUSED, body={"jobs": [job(namespace=OWN)]}, note="of a namespace"),
    Row("POST /api/v1/jobs/preview", body={"job": job()}),
    Row("POST /api/v1/jobs/cancel", HIDDEN, body={"ids": ["$job"]}, fresh=_queued),
    Row(
        "POST /api/v1/jobs/cancel", HIDDEN, body={"ids": ["$job"]}, fresh=_foreign_queued,
        of_others=True, note="of others",
    ),
    Row("POST /api/v1/jobs/bulk", body={"action": "cancel", "where": {"name": MARK, "queue": "x"}}),
    # The answer repeats the filter, so that must not be the mark itself.
    Row("POST /api/v1/jobs/bulk/preview", body={"action": "cancel", "where": {"text": MARK[:-1]}}),
    Row("POST /api/v1/jobs/{job:int}/cancel", HIDDEN, fresh=_queued),
    Row(
        "POST /api/v1/jobs/{job:int}/cancel", HIDDEN, fresh=_foreign_queued, of_others=True,
        note="of others",
    ),
    Row("POST /api/v1/jobs/delete", HIDDEN, body={"ids": ["$job"]}, fresh=_ended),
    Row("DELETE /api/v1/jobs/{job:int}", HIDDEN, fresh=_ended),
    Row("POST /api/v1/jobs/{job:int}/retry", HIDDEN, fresh=_ended),
    Row(
        "POST /api/v1/jobs/{job:int}/retry", HIDDEN, fresh=_foreign_ended, of_others=True,
        note="of others",
    ),
    Row("POST /api/v1/jobs/{job:int}/retry-with", HIDDEN, body=OTHER_ARGS, fresh=_ended),
    Row(
        "POST /api/v1/jobs/{job:int}/retry-with", HIDDEN, body=OTHER_ARGS, fresh=_foreign_ended,
        of_others=True, note="of others",
    ),
    Row("POST /api/v1/jobs/{job:int}/priority", HIDDEN, body={"adjustment": -1}, fresh=_queued),
    Row(
        "POST /api/v1/jobs/{job:int}/priority", HIDDEN, body={"adjustment": -1},
        fresh=_foreign_queued, of_others=True, note="of others",
    ),
    Row("POST /api/v1/jobs/{job:int}/answer", HIDDEN, body={"value": 1}, fresh=_asking),
    Row(
        "POST /api/v1/jobs/{job:int}/answer", HIDDEN, body={"value": 1}, fresh=_foreign_asking,
        of_others=True, note="of others",
    ),
    Row("POST /api/v1/signals", body={"name": "go"}),
    Row("POST /api/v1/signals", REFUSED, body={"name": "go", **IN_OWN}, note="of a namespace"),
    Row("POST /api/v1/jobs/{job:int}/unblock", HIDDEN, body={}, fresh=_blocked),
    Row("POST /api/v1/workflows/{workflow:int}/cancel", HIDDEN, body={}, fresh=_workflow),
    Row(
        "POST /api/v1/workflows/{workflow:int}/cancel", HIDDEN, body={}, fresh=_foreign_workflow,
        of_others=True, note="of others",
    ),
    Row("POST /api/v1/workflows/{workflow:int}/retry", HIDDEN, body={}, fresh=_ended_workflow),
    Row(
        "POST /api/v1/workflows/{workflow:int}/retry", HIDDEN, body={},
        fresh=_foreign_ended_workflow, of_others=True, note="of others",
    ),
    Row(
        "PUT /api/v1/uploads/{sha256:str}", REFUSED, {**IN_OWN, "size": FILE["size"]}, BYTES,
        {"sha256": FILE["sha256"]},
    ),
    Row(
        "PUT /api/v1/names/{name:path}", HIDDEN, body={"job": "$source", "artifact": "file"},
        values={"name": "n"},
    ),
    Row(
        "POST /api/v1/templates/{name:str}/start", REFUSED, IN_OWN, body={}, values={"name": "t"},
        fresh=_template,
    ),
    Row(
        "POST /api/v1/templates/{name:str}/preview", REFUSED, IN_OWN, body={},
        values={"name": "t"}, fresh=_template,
    ),
    Row(
        "PUT /api/v1/templates/{name:str}", REFUSED, IN_OWN, {"body": TEMPLATE},
        {"name": "t"},
    ),
    Row(
        "DELETE /api/v1/templates/{name:str}", REFUSED, IN_OWN, values={"name": "t"},
        fresh=_template,
    ),
    Row("PUT /api/v1/schedules/{name:str}", REFUSED, IN_OWN, SCHEDULE, {"name": "s"}),
    Row(
        "DELETE /api/v1/schedules/{name:str}", REFUSED, IN_OWN, values={"name": "s"},
        fresh=_schedule,
    ),
    *(
        Row(
            f"POST /api/v1/schedules/{{name:str}}/{verb}", REFUSED, IN_OWN, values={"name": "s"},
            fresh=_schedule,
        )
        for verb in ("pause", "resume", "run")
    ),
)  # fmt: skip

MANAGING: Final = (
    Row("GET /api/v1/tokens"),
    Row(
        "POST /api/v1/tokens", REFUSED, fresh=_new_name, values={"new": "x"},
        body={"name": "$new", "role": "viewer", "namespaces": [OWN]},
    ),
    Row("DELETE /api/v1/tokens/{token:int}", HIDDEN, values={"token": 1}, fresh=_token),
    Row(
        "POST /api/v1/tokens/{token:int}/rotate", HIDDEN, values={"token": 1}, fresh=_token,
        body={},
    ),
    Row("GET /api/v1/audit"),
    Row("GET /api/v1/audit/recent"),
    Row("GET /api/v1/whoami"),
    Row("GET /api/v1/live", query={"show": ["jobs"], "follow": "false"}),
    Row("GET /auth/ways"),
    Row("POST /auth/session", body={"code": "link_x"}, otherwise=401),  # nobody made this code
    Row("POST /auth/links"),
    Row("GET /auth/settings", otherwise=404),  # this server has no identity provider
    Row("GET /auth/login", otherwise=404),
    Row("GET /auth/callback", otherwise=404),
    Row("POST /auth/logout"),
    Row("POST /api/v1/codes", body={}),
    Row("PUT /api/v1/workers/{worker:str}/static", body={}, fresh=_spare_worker),
    Row("PATCH /api/v1/workers/{worker:str}/static", body={}, fresh=_spare_worker),
    Row(
        "POST /api/v1/workers/{worker:str}/{action:str}", values={"action": "drain"},
        fresh=_spare_worker,
    ),
    Row("DELETE /api/v1/workers/{worker:str}", fresh=_spare_worker),
    Row("POST /api/v1/queues/{name:str}/pause", values={"name": "q"}),
    Row("POST /api/v1/queues/{name:str}/resume", values={"name": "q"}),
    Row("POST /api/v1/queues/{name:str}/limits", body={}, values={"name": "q"}),
    Row("GET /api/v1/namespaces/weights"),
    Row("POST /api/v1/namespaces/{name:str}/weight", body={"weight": 2}, values={"name": "q"}),
    Row("PUT /api/v1/pools/{name:str}", body=POOL, values={"name": "p"}),
    Row("DELETE /api/v1/pools/{name:str}", values={"name": "p"}, fresh=_pool),
    Row("POST /api/v1/verify"),
)  # fmt: skip

SYNC: Final = {"incarnation": "$incarnation", "seq": "$seq"}

WORKING: Final = (
    Row("POST /api/v1/workers/enrol", body={"name": "$new"}, values={"new": "x"}, fresh=_new_name),
    Row(
        "POST /api/v1/workers/{worker:int}/sync", body=SYNC, values={"seq": 9}, fresh=_next_sync,
    ),
    Row("POST /api/v1/workers/{worker:int}/leave", body={"incarnation": "$incarnation"}),
    Row(
        f"GET {ATTEMPT}/inputs/{{source:int}}/{{name:path}}", query=HELD, values={"name": "file"},
    ),
    Row(f"POST {ATTEMPT}/log", query={**HELD, "offset": 0}, body=BYTES),
    Row(f"POST {ATTEMPT}/log/end", query=HELD, body={"bytes": 99, "state": "lost"}),
    Row(f"POST {ATTEMPT}/progress", query=HELD, body={"progress": 1}),
    Row(f"POST {ATTEMPT}/steps", query=HELD, body={"do": "store", "key": "k", "value": 1}),
    Row(f"POST {ATTEMPT}/stack", query=HELD, body={"request": 1}),
    Row(f"POST {ATTEMPT}/duration", query=HELD, body={"duration_ms": 1_000}),
    Row(
        f"POST {ATTEMPT}/jobs", query=HELD, values={"new": "x"}, fresh=_new_name,
        body={"jobs": [job()], "key": "$new"},
    ),
    Row(
        f"PUT {ATTEMPT}/artifacts/{{name:path}}", query={**HELD, **FILE}, body=BYTES,
        values={"name": "made"},
    ),
    Row(
        f"POST {ATTEMPT}/artifacts/{{name:path}}", query=HELD, values={"name": "made/presign"},
    ),
)  # fmt: skip

ROWS: Final = (*READING, *CHANGING, *MANAGING, *WORKING)
