"""Runs cascades: what a job's end means to many others, one chunk at a time.

Each step is its own transaction, or part of the command's if the store runs transactions one after
another. A crash between two steps loses nothing: the cascade is a row, and the scheduling loop
picks it up again.
"""

from windlass.domain.job.job import ALLOW_FAILURE, decode_spec
from windlass.domain.lifecycle.states import STATE_BY_CODE, State
from windlass.domain.rows.records import Cascade, CascadeKind, JobFacts
from windlass.engine.jobs.decide import decide, release_with_new_age
from windlass.engine.jobs.dependents import (
    CHUNK,
    Ended,
    hold_dependents,
    meet,
    notify_dependents,
)
from windlass.engine.jobs.end_waiting import note_ended
from windlass.engine.jobs.inherit_rank import inherit_chunk
from windlass.engine.jobs.supersede import revive
from windlass.engine.transaction.unit_of_work import Work
from windlass.engine.workflows.retry import retry_chunk
from windlass.engine.workflows.stop import stop_chunk

ABORTED = State.ABORTED.code
SKIPPED = State.SKIPPED.code


async def advance(work: Work, most: int = 1) -> bool:
    """Runs steps of the oldest cascades until they touched `most` jobs; False if none is open.

    More than one step only makes sense if transactions run one after another; otherwise each must
    take its locks in order.
    """
    done = 0
    while done < most:
        cascade = await work.tx.workflows.pull_cascade()
        if cascade is None:
            break
        cursor, touched = await _advance(work, cascade)
        await work.tx.workflows.advance_cascade(cascade.id, cursor)
        if work.cascades:
            await work.tx.workflows.add_cascades(work.cascades)
            work.cascades = []
        done += max(touched, 1)
    return done > 0


async def _advance(work: Work, cascade: Cascade) -> tuple[int | None, int]:
    """Runs one step; returns where the next begins (None: done), and how many jobs it touched."""
    if cascade.kind in (CascadeKind.CANCEL, CascadeKind.STOP):
        return await stop_chunk(work, cascade), CHUNK
    if cascade.kind == CascadeKind.RETRY:
        return await retry_chunk(work, cascade), CHUNK
    if cascade.kind == CascadeKind.INHERIT:
        return await inherit_chunk(work, cascade)
    if cascade.kind == CascadeKind.RELEASE:
        await release_with_new_age(work, cascade.known_job)
        return None, 1
    if cascade.kind == CascadeKind.DECIDE:
        await decide(work, cascade.known_job)
        return None, 1
    chunks = await work.tx.jobs.dependents([cascade.known_job], cascade.cursor)
    edges = chunks.get(cascade.known_job)
    if edges is None:
        return None, 1
    await _step(work, cascade, edges)
    return (cascade.cursor + 1 if len(edges) >= CHUNK else None), len(edges)


async def _step(work: Work, cascade: Cascade, edges: tuple[int, ...]) -> None:
    if cascade.kind == CascadeKind.REVIVE:
        await revive(work, cascade, edges)
        return
    owner = (await work.tx.jobs.read([cascade.known_job]))[cascade.known_job]
    met: dict[int, int] = {}
    if cascade.kind in (CascadeKind.SATISFY, CascadeKind.FAIL):
        satisfied = cascade.kind == CascadeKind.SATISFY and _satisfies(owner)
        for edge in edges:
            if edge & 1 or satisfied:
                met[edge >> 1] = met.get(edge >> 1, 0) + 1
    if cascade.kind == CascadeKind.SATISFY:
        await meet(work, met)
        return
    await _abort(work, owner, [edge >> 1 for edge in edges if not edge & 1], met)


def _satisfies(facts: JobFacts) -> bool:
    return facts.state == State.COMPLETED.code or bool(facts.flags & ALLOW_FAILURE)


async def _abort(work: Work, owner: JobFacts, jobs: list[int], met: dict[int, int]) -> None:
    """Aborts those of these jobs that still wait, and continues with their own dependents.

    Jobs in `met` accept any end. Dependents of a skipped job are skipped, too.
    """
    jobs = sorted(set(jobs))
    await work.tx.jobs.hold(jobs)
    edges = await work.tx.jobs.dependents(jobs, 0)
    await hold_dependents(work, [*jobs, *met], edges)
    reason = f"Dependency {await _named(work, owner.id)} {STATE_BY_CODE[owner.final_state]}"
    to = SKIPPED if owner.final_state == SKIPPED else ABORTED
    ended = await work.tx.flow.end_waiting(jobs, to, work.now, reason, queued=False)
    await note_ended(work, ended, to, reason)
    notified = [Ended(row.job, bool(row.flags & ALLOW_FAILURE), reason) for row in ended]
    await notify_dependents(work, notified, edges)
    if met:
        await meet(work, met)


async def _named(work: Work, job: int) -> str:
    """Returns the id of a job, and its name if it has one: 12 (build)."""
    spec = (await work.tx.jobs.specs([job])).get(job)
    name = None if spec is None else decode_spec(spec).name
    return str(job) if name is None else f"{job} ({name})"
