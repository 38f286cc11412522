"""Which artifacts a running attempt may read: those that its job declares or waits for.

A worker is trusted with the jobs it holds and nothing else, and a job never reads beyond its
namespace, whatever its arguments name.
"""

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from windlass.domain.rows.files import UPLOADED, ArtifactRow
from windlass.domain.values.errors import NotFound
from windlass.engine.attempts.attempt_files import is_held, lease_lost
from windlass.ports.gateway import Holder
from windlass.store.sql.transaction import ReadTx

_JOB: Final = "job"

_decode = msgspec.json.Decoder().decode


async def check_input(tx: ReadTx, holder: Holder, job: int) -> None:
    """Refuses artifacts of `job` unless the attempt is held and uses them.

    An artifact it may not read looks as if it did not exist.
    """
    lease = (await tx.leases.read([holder.job])).get(holder.job)
    if lease is None or not is_held(lease, holder):
        raise lease_lost(holder)
    bodies = await tx.jobs.specs(sorted({holder.job, job}))
    if holder.job not in bodies or job not in bodies:
        raise NotFound("job", job)
    spec, other = _decode(bodies[holder.job]), _decode(bodies[job])
    if _namespace(spec) != _namespace(other):
        raise NotFound("job", job)
    if job in _declared(spec):
        return
    row = (await tx.files.dynamic([holder.job])).get(holder.job)
    found = set() if row is None or row.attempt != holder.attempt else _jobs_in(_decode(row.body))
    if job not in found:
        raise NotFound("job", job)


async def own_upload(tx: ReadTx, holder: Holder, digest: str) -> ArtifactRow:
    """Returns a file that was uploaded for the job of an attempt that is held."""
    lease = (await tx.leases.read([holder.job])).get(holder.job)
    if lease is None or not is_held(lease, holder):
        raise lease_lost(holder)
    rows = (await tx.files.artifacts([holder.job])).get(holder.job, [])
    for row in rows:
        if (row.attempt, row.name) == (UPLOADED, digest):
            return row
    raise NotFound("upload", digest)


def _namespace(spec: dict[str, Any]) -> str:
    return str(spec.get("namespace", "default"))


def _declared(spec: dict[str, Any]) -> set[int]:
    """Returns the jobs that a spec waits for or names in its arguments."""
    waited = {*spec.get("after", ()), *spec.get("after_any", ())}
    return {job for job in waited if isinstance(job, int)} | _jobs_in(spec.get("args"))


def _jobs_in(value: object) -> set[int]:
    return set(_walk(value))


def _walk(value: object) -> Iterator[int]:
    if isinstance(value, dict):
        job = value.get(_JOB)
        if isinstance(job, int):
            yield job
        for item in value.values():
            yield from _walk(item)
    elif isinstance(value, list):
        for item in value:
            yield from _walk(item)
