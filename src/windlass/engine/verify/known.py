"""What a check starts from and leads to: a snapshot by id, and the violations found.

The snapshot knows about jobs, shapes and workers what events do not repeat.
"""

from functools import lru_cache

import msgspec
from msgspec import Struct

from windlass.domain.job.forms import Concurrency
from windlass.domain.job.job import DEFAULT_NAMESPACE
from windlass.domain.matching.matching import merge_metadata
from windlass.domain.matching.shapes import Shape, can_run
from windlass.domain.rows.records import JobRecord
from windlass.domain.values.ids import ShapeId
from windlass.store.sql.snapshot import Snapshot

_shape_decoder = msgspec.json.Decoder(Shape)
MAX_FINDINGS = 1_000  # one bug can break an invariant for every job; the first ones are enough


class JobReferences(msgspec.Struct):
    """The fields of a stored spec that refer to other jobs."""

    namespace: str = DEFAULT_NAMESPACE
    after: tuple[int | str, ...] = ()
    after_any: tuple[int | str, ...] = ()
    concurrency: Concurrency | None = None
    key: str | None = None
    retries: int | None = None
    priority: int | str | None = None


_ties_decoder = msgspec.json.Decoder(JobReferences)


class SnapshotIndex:
    """The snapshot, by id."""

    def __init__(self, snapshot: Snapshot) -> None:
        self.snapshot = snapshot
        self.jobs: dict[int, JobRecord] = {row.facts.id: row for row in snapshot.jobs}
        self.shapes = {row.id: _shape_decoder.decode(row.body) for row in snapshot.shapes}
        self.workers = {row.id: row for row in snapshot.workers}
        self.workflows = {row.id for row in snapshot.workflows}
        self._matches: dict[tuple[int, str, str], bool] = {}

    def ties(self, job: int) -> JobReferences:
        """Returns a job's references; empty if the job is unknown."""
        row = self.jobs.get(job)
        return JobReferences() if row is None else _decode_ties(row.spec)

    def queue_of(self, job: int) -> str:
        """Returns the queue of a job."""
        return self.shapes[self.jobs[job].facts.shape].queue

    def runs(self, shape: int, dynamic: str, static: str) -> bool:
        """Returns True if a worker with this metadata can run jobs of this shape."""
        key = shape, dynamic, static
        known = self._matches.get(key)
        if known is None:
            merged = merge_metadata(msgspec.json.decode(dynamic), msgspec.json.decode(static))
            known = self._matches[key] = can_run(self.shapes[ShapeId(shape)], merged) is None
        return known


@lru_cache(maxsize=4_096)
def _decode_ties(spec: bytes) -> JobReferences:
    return _ties_decoder.decode(spec)


class Violation(Struct, frozen=True):
    """A broken invariant, by its name in the design: "S3". `seq` is the event's, if any."""

    invariant: str
    message: str
    job: int = 0
    seq: int = 0


class Findings:
    """The violations found so far, a bounded number."""

    def __init__(self) -> None:
        self.violations: list[Violation] = []

    def add(self, invariant: str, message: str, job: int = 0, seq: int = 0) -> None:
        """Adds a violation."""
        if len(self.violations) < MAX_FINDINGS:
            self.violations.append(Violation(invariant, message, job, seq))
