"""The engine's answers to "why": a job that waits, a worker that idles, where time went."""

from windlass.domain.config import Config
from windlass.domain.explain.explanation import Explanation, WorkerExplanation
from windlass.domain.explain.waiting_time import TimeSpent
from windlass.engine.explain.job import Explainer, Sees
from windlass.engine.explain.time_spent import time_spent
from windlass.engine.explain.worker import explain_worker
from windlass.engine.transaction.arguments import check_id
from windlass.engine.transaction.catalog import Catalog
from windlass.ports.store import Store


def everything(_namespace: str) -> bool:
    """Who may see every namespace."""
    return True


class ExplainCommands:
    """A part of the engine. All of it reads, and changes nothing."""

    config: Config
    store: Store
    _catalog: Catalog

    async def explain(self, job: int, sees: Sees = everything) -> Explanation:
        """Why a job is where it is, told to one who `sees` some namespaces."""
        check_id("job", job)
        return await self.store.read(
            lambda tx: Explainer(tx, self._catalog, self.config, sees).explain(job)
        )

    async def explain_worker(self, worker: int, sees: Sees = everything) -> WorkerExplanation:
        """Why a worker is idle, told to one who `sees` some namespaces."""
        check_id("worker", worker)
        return await self.store.read(lambda tx: explain_worker(tx, self._catalog, worker, sees))

    async def time_spent(self, job: int, sees: Sees = everything) -> TimeSpent:
        """Where a job's time went, told to one who `sees` some namespaces."""
        check_id("job", job)
        return await self.store.read(lambda tx: time_spent(tx, self._catalog, job, sees))
