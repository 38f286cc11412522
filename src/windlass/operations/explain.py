"""Routes that explain: why a job waits, why a worker is idle, where a job's time went."""

from functools import partial

from windlass.domain.access.rights import Action, sees
from windlass.domain.explain.explanation import Explanation, Matrix, WorkerExplanation
from windlass.domain.explain.waiting_time import TimeSpent
from windlass.domain.values.ids import Id, NameOrId
from windlass.engine.fleet.workers import find_worker
from windlass.operations.dispatch.call import Call
from windlass.operations.dispatch.routes import Routes

routes = Routes("/api/v1", "explain")


@routes.get("/jobs/{job:int}/explain", needs=Action.READ_JOBS, costly=True)
async def explain(call: Call, job: Id) -> Explanation:
    """Explains why a job is waiting, which workers could run it, and what would help."""
    return await call.services.engine.explain.job(job, partial(sees, call.who))


@routes.get("/jobs/{job:int}/explain/matrix", needs=Action.READ_JOBS, costly=True)
async def matrix(call: Call, job: Id) -> Matrix:
    """Shows which workers meet which clauses of a waiting job, and what they have."""
    return await call.services.engine.explain.matrix(job, partial(sees, call.who))


@routes.get("/jobs/{job:int}/time", needs=Action.READ_JOBS, costly=True)
async def time_spent(call: Call, job: Id) -> TimeSpent:
    """Shows where a job's time went, by cause."""
    return await call.services.engine.explain.time_spent(job, partial(sees, call.who))


@routes.get("/workers/{worker:str}/explain", needs=Action.READ_FLEET, costly=True)
async def explain_worker(call: Call, worker: NameOrId) -> WorkerExplanation:
    """Explains why a worker is idle."""
    engine = call.services.engine
    row = await engine.store.read(lambda tx: find_worker(tx, worker))
    return await engine.explain.worker(row.id, partial(sees, call.who))
