"""What an engine caches of the store: shapes, queues, settings, and who can run what.

A cache, never state: it may be dropped at any time, and `refresh` fills it again. The ids of shapes
never change, and a match depends only on a shape, its queue's isolation and a worker's merged
metadata; matches are dropped when the isolation of a queue changes.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from windlass.domain.config import Config
from windlass.domain.job.validation import ValidatedJob
from windlass.domain.lifecycle.rank import AGING_OFF_INTERVAL_MS, queue_weight
from windlass.domain.matching.indices import offered
from windlass.domain.matching.matching import merge_metadata, metadata_digest
from windlass.domain.matching.room import SHARES
from windlass.domain.matching.shapes import Shape, can_run, in_queue, is_gated, preferred
from windlass.domain.rows.records import QueueRow, Reservation, Worker
from windlass.store.sql.transaction import ReadTx, WriteTx

POOL = "pool:name"  # metadata key of workers that a pool started

_shape_decoder = msgspec.json.Decoder(Shape)
_encode = msgspec.json.Encoder(order="deterministic").encode


class Profile:
    """One distinct merged metadata, and which shapes it can run."""

    __slots__ = (
        "_catalog", "_liking", "_matches", "digest", "indexed", "metadata", "paid", "shares",
    )  # fmt: skip

    def __init__(self, catalog: "Catalog", digest: str, metadata: dict[str, Any]) -> None:
        self._catalog = catalog
        self._matches: dict[int, bool] = {}
        self._liking: dict[int, int] = {}
        self.digest = digest
        self.metadata = metadata
        self.shares = bool(metadata.get(SHARES))  # every job here takes a processor
        self.paid = metadata.get(POOL) is not None
        self.indexed = offered(metadata)  # indices by resource, for indexed resources

    def forget(self) -> None:
        """Forgets all matches: shape ids or queue settings may have changed."""
        self._matches.clear()
        self._liking.clear()

    def liking(self, shape: int) -> tuple[int, bool]:
        """Returns a sort key of workers for jobs of this shape: preferences met, then unpaid before
        paid.
        """
        known = self._liking.get(shape)
        if known is None:
            wants = self._catalog.shapes.get(shape)
            if wants is None:
                return 0, self.paid
            known = self._liking[shape] = -preferred(wants, self.metadata) if wants.prefers else 0
        return known, self.paid

    def runs(self, shape: int) -> bool:
        """Returns True if workers with this metadata can run jobs of `shape`."""
        known = self._matches.get(shape)
        if known is None:
            needs = self._catalog.shapes.get(shape)
            if needs is None:
                return True  # unknown for now: an unneeded read costs less than missing a job
            least = self._catalog.isolated.get(needs.queue)
            known = self._matches[shape] = can_run(in_queue(needs, least), self.metadata) is None
        return known


class Shares:
    """The number of running jobs of each namespace, and its weight."""

    def __init__(self) -> None:
        self.running: dict[str, int] = {}
        self.weights: dict[str, int] = {}
        self.read_at = -1

    def take(self, namespace: str, jobs: int) -> None:
        """Adds to the running jobs of this namespace."""
        self.running[namespace] = self.running.get(namespace, 0) + jobs


class Catalog:
    """The cache. Only committed facts enter it."""

    def __init__(self, config: Config) -> None:
        self.interval_ms = config.aging_interval_ms or AGING_OFF_INTERVAL_MS
        self.shapes: dict[int, Shape] = {}
        self.queues: dict[str, QueueRow] = {}
        self.any_paused = False
        self.any_limited = False
        self.timeouts: dict[str, int] = {}  # of queues that have one; 0: none
        self.isolated: dict[str, str] = {}  # the weakest modes that queues allow, by name
        self.stale = False
        self.any_choosy = False  # a shape has preferences, or a worker costs money
        self.reserved: dict[int, Reservation] = {}  # by worker
        self.shares = Shares()
        self._gated: dict[int, bool] = {}
        self.epoch = 0
        self.claimed_epoch = 0  # the newest that a worker has reported
        self.hold_until = 0  # after a restore, no job is assigned before this time
        self.ids: dict[str, int] = {}
        self._newest = 0
        self._profiles: dict[tuple[str, str], Profile] = {}
        self._by_digest: dict[str, Profile] = {}
        self._of_worker: dict[int, tuple[Worker, Profile]] = {}

    async def refresh(self, tx: ReadTx) -> None:
        """Reads what was added or changed since the last call."""
        for row in await tx.catalog.shapes_after(self._newest):
            self._learn(row.id, row.digest, _shape_decoder.decode(row.body))
            self._newest = max(self._newest, row.id)
        self.queues = {row.name: row for row in await tx.catalog.queues()}
        self._look_at_queues()
        self.stale = False
        self.reserved = {row.worker: row for row in await tx.placement.reservations()}
        meta = await tx.catalog.meta()
        self.epoch = meta.get("epoch", 0)
        self.hold_until = meta.get("hold_until", 0)

    def learn_queues(self, rows: Iterable[QueueRow]) -> None:
        """Caches queues whose change has committed."""
        self.queues.update({row.name: row for row in rows})
        self._look_at_queues()

    def _look_at_queues(self) -> None:
        rows = self.queues.values()
        self.any_paused = any(row.paused for row in rows)
        self.any_limited = any(row.max_running or row.max_per_worker for row in rows)
        timeouts = {row.name: row.timeout_ms for row in rows if row.timeout_ms is not None}
        if timeouts != self.timeouts:
            self.timeouts = timeouts
        isolated = {row.name: row.isolation for row in rows if row.isolation}
        if isolated != self.isolated:
            self.isolated = isolated
            for profile in self._by_digest.values():
                profile.forget()

    async def intern(self, tx: WriteTx, new: Mapping[str, ValidatedJob]) -> dict[str, int]:
        """Inserts these shapes, by digest. They are cached only after the commit."""
        bodies = {digest: _encode(new[digest].shape) for digest in sorted(new)}
        return await tx.catalog.intern_shapes(bodies)

    def learn(self, new: Mapping[str, ValidatedJob], ids: Mapping[str, int]) -> None:
        """Caches shapes whose transaction has committed."""
        for digest, job in new.items():
            self._learn(ids[digest], digest, job.shape)

    def _learn(self, shape_id: int, digest: str, shape: Shape) -> None:
        self.shapes[shape_id] = shape
        self.ids[digest] = shape_id
        if shape.prefers:
            self.any_choosy = True

    async def know(self, tx: ReadTx, shapes: Iterable[int]) -> Mapping[int, Shape]:
        """Makes sure that these shapes are cached; ids may become visible out of order.

        Returns the cached shapes. They stay known there when a rollback clears the cache.
        """
        if any(shape not in self.shapes for shape in shapes):
            self._newest = 0
            await self.refresh(tx)
        return self.shapes

    def weight(self, queue: str) -> int:
        """Returns the queue's weight as set by an operator, else the default."""
        row = self.queues.get(queue)
        return queue_weight(queue) if row is None else row.weight

    def paused(self, shape: int) -> bool:
        """Returns True if jobs of this shape may not be claimed because of their queue."""
        row = self.queues.get(self.shapes[shape].queue)
        return row is not None and bool(row.paused)

    def gated(self, shape: int, profile: Profile) -> bool:
        """Returns True if more than the match decides whether such a worker may have a job now."""
        known = self._gated.get(shape)
        if known is None:
            known = self._gated[shape] = is_gated(self.shapes[shape])
        if known or profile.shares:
            return True
        if not self.any_limited:
            return False
        row = self.queues.get(self.shapes[shape].queue)
        return row is not None and bool(row.max_running or row.max_per_worker)

    def limit_of(self, queue: str) -> int | None:
        """Returns the row of `limits` that counts this queue's running jobs, if it has one."""
        row = self.queues.get(queue)
        return None if row is None or not row.max_running else row.limit

    def per_worker(self, queue: str) -> int:
        """Returns how many jobs of this queue a worker may hold, 0 for any number."""
        row = self.queues.get(queue)
        return 0 if row is None else row.max_per_worker

    def shapes_in(self, queue: str) -> list[int]:
        """Returns the shapes of a queue."""
        return [number for number, shape in self.shapes.items() if shape.queue == queue]

    def queue_of(self, shape: int) -> str:
        """Returns the name of the queue of this shape's jobs."""
        return self.shapes[shape].queue

    def namespace_of(self, shape: int) -> str:
        """Returns the namespace of this shape's jobs."""
        return self.shapes[shape].namespace

    def clear(self, numbers_return: bool) -> None:
        """Forgets what a transaction may have cached before it was rolled back.

        If the store never reuses a number that was rolled back, the shapes by number stay: other
        transactions may be using them.
        """
        self.ids.clear()
        self._newest = 0
        self.stale = True  # a commit whose answer was lost may have changed a queue
        if numbers_return:
            self.shapes = {}
            self._gated.clear()
            for profile in self._by_digest.values():
                profile.forget()

    def remember(self, worker: Worker) -> None:
        """Caches a worker's profile for its waiting syncs."""
        self._of_worker[worker.id] = worker, self.profile(worker)

    def profile_of(self, worker: int) -> Profile | None:
        """Returns the profile of a worker that has synced with this engine before."""
        known = self._of_worker.get(worker)
        return None if known is None else known[1]

    def last_seen_as(self, worker: int) -> tuple[Worker, Profile] | None:
        """Returns a worker as this engine last saw it; it may have changed since."""
        return self._of_worker.get(worker)

    def profile(self, worker: Worker) -> Profile:
        """Returns the profile of a worker's current metadata."""
        return self.profile_by(worker.static, worker.dynamic)

    def profile_by(self, static: str, dynamic: str) -> Profile:
        """Returns the same for given metadata of operators and of the agent."""
        known = self._profiles.get((static, dynamic))
        if known is None:
            merged = merge_metadata(msgspec.json.decode(dynamic), msgspec.json.decode(static))
            digest = metadata_digest(merged)
            known = self._by_digest.setdefault(digest, Profile(self, digest, merged))
            self.any_choosy = self.any_choosy or known.paid
            if len(self._profiles) >= 50_000:
                self._profiles.clear()
            self._profiles[static, dynamic] = known
        return known
