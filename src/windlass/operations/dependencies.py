"""What a job waits for and what waits for it, considering jobs that others took the place of."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from windlass.domain.job.job import JobSpec, decode_spec
from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.rows.records import JobRecord
from windlass.engine.jobs.dependents import chains_of, newest_of
from windlass.messages.jobs import LinkedJob
from windlass.store.sql.transaction import ReadTx

SHOWN: Final = 100  # dependents of a job that we list

Sees = Callable[[ReadTx, Sequence[JobRecord]], Awaitable[Sequence[JobRecord]]]


class Dependencies(NamedTuple):
    """The dependencies and dependents of one job; lists only know the newest successors."""

    newest: Mapping[int, int] = {}
    dependencies: Sequence[LinkedJob] = ()
    dependents: Sequence[LinkedJob] = ()
    more: bool = False

    def current(self, refs: Iterable[int | str]) -> list[int]:
        """Returns these jobs; where one was retried, the job that took its place."""
        ids = [self.newest.get(ref, ref) for ref in refs if isinstance(ref, int)]
        return list(dict.fromkeys(ids))


NO_DEPENDENCIES: Final = Dependencies()


async def newest_ids(tx: ReadTx, views: Sequence[JobRecord]) -> dict[int, int]:
    """Returns the newest successor of every job that these wait for."""
    named = {ref for view in views for ref, _ in _named(decode_spec(view.spec))}
    return {job: fact.id for job, fact in (await newest_of(tx, named)).items()}


async def read_dependencies(tx: ReadTx, view: JobRecord, sees: Sees) -> Dependencies:
    """Reads all dependencies of one job; `sees` returns which of some jobs may be shown."""
    job = view.facts.id
    named = _named(decode_spec(view.spec))
    chains = await chains_of(tx, [ref for ref, _ in named])
    needs = [(fact.id, kind) for ref, kind in named for fact in chains.get(ref, ())]
    edges = (await tx.jobs.dependents([job], 0)).get(job, ())
    waiting = [(edge >> 1, bool(edge & 1)) for edge in edges[:SHOWN]]
    ids = {one for one, _ in (*needs, *waiting)}
    found = await sees(tx, await tx.views.some(sorted(ids))) if ids else []
    linked: dict[int, JobRecord] = {other.facts.id: other for other in found}
    return Dependencies(
        {ref: chain[-1].id for ref, chain in chains.items()},
        _linked(needs, linked),
        _linked(waiting, linked),
        len(edges) > SHOWN,
    )


def _named(spec: JobSpec) -> list[tuple[int, bool]]:
    refs = [(ref, False) for ref in spec.after] + [(ref, True) for ref in spec.after_any]
    return [(ref, kind) for ref, kind in refs if isinstance(ref, int)]


def _linked(
    dependencies: Iterable[tuple[int, bool]], views: Mapping[int, JobRecord]
) -> list[LinkedJob]:
    return [
        LinkedJob(
            job=job,
            state=str(STATE_BY_CODE[views[job].state]),
            any_end=any_end,
            superseded_by=views[job].facts.superseded_by,
        )
        for job, any_end in dict.fromkeys(dependencies)
        if job in views
    ]
