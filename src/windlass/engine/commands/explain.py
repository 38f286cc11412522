"""`engine.explain`: why a job waits, why a worker is idle, where a job's time went."""

from collections.abc import Sequence

from windlass.domain.config import Config
from windlass.domain.explain.explanation import Explanation, Matrix, WorkerExplanation
from windlass.domain.explain.waiting_time import TimeSpent
from windlass.domain.rows.records import JobRecord
from windlass.engine.explain.forecast import ActiveWorkers, Outlook, outlooks
from windlass.engine.explain.job import Explainer
from windlass.engine.explain.reasons import Sees
from windlass.engine.explain.time_spent import time_spent
from windlass.engine.explain.worker import explain_worker
from windlass.engine.jobs.priority import inherited_levels
from windlass.engine.transaction.arguments import check_id
from windlass.engine.transaction.catalog import Catalog
from windlass.store.sql.transaction import ReadTx
from windlass.store.store import Store


def everything(_namespace: str) -> bool:
    """Returns True for every namespace."""
    return True


class Explain:
    """Answers each question from one read, and changes nothing.

    `sees` says which namespaces the caller may see; other jobs are not named.
    """

    def __init__(self, *, store: Store, config: Config, catalog: Catalog) -> None:
        self._store = store
        self._config = config
        self._catalog = catalog
        self._active = ActiveWorkers()

    async def job(self, job: int, sees: Sees = everything) -> Explanation:
        """Explains why a job waits."""
        check_id("job", job)
        return await self._store.read(
            lambda tx: Explainer(tx, self._catalog, self._config, sees).explain(job)
        )

    async def matrix(self, job: int, sees: Sees = everything) -> Matrix:
        """Returns which workers meet which clauses of a waiting job."""
        check_id("job", job)
        return await self._store.read(
            lambda tx: Explainer(tx, self._catalog, self._config, sees).matrix(job)
        )

    async def worker(self, worker: int, sees: Sees = everything) -> WorkerExplanation:
        """Explains why a worker is idle."""
        check_id("worker", worker)
        return await self._store.read(lambda tx: explain_worker(tx, self._catalog, worker, sees))

    async def time_spent(self, job: int, sees: Sees = everything) -> TimeSpent:
        """Returns where a job's time went."""
        check_id("job", job)
        return await self._store.read(lambda tx: time_spent(tx, self._catalog, job, sees))

    async def outlooks(self, tx: ReadTx, views: Sequence[JobRecord]) -> dict[int, Outlook]:
        """Returns the forecasts and other outlooks of these jobs, within the caller's read."""
        return await outlooks(tx, self._catalog, self._active, views)

    async def levels(self, tx: ReadTx, views: Sequence[JobRecord]) -> dict[int, Outlook]:
        """Returns their outlooks without forecasts: only how far dependents raise them."""
        await self._catalog.know(tx, [view.facts.shape for view in views])
        return {
            view.facts.id: Outlook(inherited=inherited_levels(self._catalog, view.facts))
            for view in views
        }
