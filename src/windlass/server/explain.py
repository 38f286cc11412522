"""Routes that tell why: a job that waits, a worker that idles, where a job's time went."""

from typing import Annotated, Any

from litestar import Controller, Request, get
from litestar.params import Parameter

from windlass.domain.access.roles import Role
from windlass.domain.explain.explanation import Explanation, WorkerExplanation
from windlass.domain.explain.waiting_time import TimeSpent
from windlass.server.guard import identity_of
from windlass.server.services import UseServices

Ask = Request[Any, Any, Any]
Id = Annotated[int, Parameter(ge=1, le=2**62)]


class ExplainRoutes(Controller):
    """Reasons, in the words of the functions that decide."""

    path = "/api/v1"
    tags = ("explain",)

    @get("/jobs/{job:int}/explain", opt={"role": Role.VIEWER})
    async def explain(self, request: Ask, job: Id, services: UseServices) -> Explanation:
        """Why a job waits: for what, which workers could run it, and what would help."""
        return await services.engine.explain.job(job, identity_of(request).sees)

    @get("/jobs/{job:int}/time", opt={"role": Role.VIEWER})
    async def time_spent(self, request: Ask, job: Id, services: UseServices) -> TimeSpent:
        """Where a job's time went, by cause."""
        return await services.engine.explain.time_spent(job, identity_of(request).sees)

    @get("/workers/{worker:int}/explain", opt={"role": Role.VIEWER})
    async def explain_worker(
        self, request: Ask, worker: Id, services: UseServices
    ) -> WorkerExplanation:
        """Why a worker is idle."""
        return await services.engine.explain.worker(worker, identity_of(request).sees)
