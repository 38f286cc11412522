"""How to run a job again by hand, and the chain of jobs that superseded each other."""

from typing import Any, Final

import msgspec
from msgspec.structs import replace

from windlass.domain.access.rights import Identity, sees
from windlass.domain.explain.equivalents import equivalents, quote
from windlass.domain.job.job import DEFAULT_NAMESPACE, JobSpec, decode_spec
from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.matching.isolation import DEFAULT, MODES, WEAKEST, demanded, strongest
from windlass.domain.matching.matching import merge_metadata
from windlass.domain.rows.records import JobRecord
from windlass.domain.rows.views import newest_attempt
from windlass.domain.values.errors import NotFound
from windlass.domain.values.ids import shown_attempt
from windlass.domain.values.quantities import format_moment
from windlass.messages.jobs import ChainJob, JobChain, Reproduction
from windlass.store.sql.transaction import ReadTx

MAX_JOBS: Final = 100  # jobs of a chain, on each side of the one that was asked for
JOB_VARIABLES: Final = ("WINDLASS_JOB", "WINDLASS_ATTEMPT", "WINDLASS_WORKFLOW")

_decode: Final = msgspec.json.Decoder(dict[str, Any]).decode


async def _visible(tx: ReadTx, job: int, who: Identity) -> tuple[JobRecord, JobSpec]:
    view = await tx.views.job(job)
    if view is None:
        raise NotFound("job", job)
    spec = decode_spec(view.spec)
    if not sees(who, spec.namespace or DEFAULT_NAMESPACE):
        raise NotFound("job", job)
    return view, spec


async def read_reproduction(tx: ReadTx, job: int, who: Identity) -> Reproduction:
    """Returns how to run a job again."""
    view, spec = await _visible(tx, job, who)
    # What it waited for, its key and its workflow are of its first life.
    again = replace(
        spec, after=(), after_any=(), run_if=None, workflow=None, key=None, not_before=None,
        start_before=None, finish_before=None, parent=None,
    )  # fmt: skip
    same = equivalents(again)
    args: dict[str, Any] = spec.args if isinstance(spec.args, dict) else {}
    argv = args.get("argv")
    number = shown_attempt(newest_attempt(view.facts, view.lease), view.facts.handed_back)
    own = dict(zip(JOB_VARIABLES, (job, number or 1, spec.workflow), strict=True))
    env = {name: str(value) for name, value in own.items() if value is not None}
    env |= {str(name): str(value) for name, value in (args.get("env") or {}).items()}
    return Reproduction(
        job=job, attempt=number, command=same.command, python=same.python, call=same.call,
        program=" ".join(map(quote, map(str, argv))) if isinstance(argv, list) else None,
        fetch=[_fetched(one) for one in args.get("inputs") or () if isinstance(one, dict)],
        env=env, secrets=list(spec.secrets), worker=view.worker,
        isolation=await _isolation(tx, view, spec),
    )  # fmt: skip


def _fetched(one: dict[str, Any]) -> str:
    """Returns the command that gets one input."""
    words = ["windlass", "artifacts", str(one.get("job")), str(one.get("artifact"))]
    return " ".join(map(quote, words))


async def _isolation(tx: ReadTx, view: JobRecord, spec: JobSpec) -> str | None:
    """Returns the mode that its worker chose for it, by what its queue demands now.

    None if the worker was restarted since: it may have been set up otherwise.
    """
    if view.worker is None:
        return None
    incarnation = view.facts.incarnation if view.lease is None else view.lease.incarnation
    queues = {row.name: row.isolation for row in await tx.catalog.queues()}
    row = await tx.workers.read_name(view.worker)
    if row is None or row.incarnation != incarnation:
        return None
    own = merge_metadata(_decode(row.dynamic), _decode(row.static)).get(DEFAULT, WEAKEST)
    mode = own if own in MODES else WEAKEST
    asked = demanded(spec.isolation, spec.network, spec.image)
    return strongest(mode, asked, queues.get(spec.queue))  # type: ignore[arg-type]


async def read_chain(tx: ReadTx, job: int, who: Identity) -> JobChain:
    """Returns a job with those before and after it."""
    first, _ = await _visible(tx, job, who)
    before, more = await _follow(tx, first, "supersedes")
    after, further = await _follow(tx, first, "superseded_by")
    found = [*reversed(before), first, *after]
    return JobChain([_shown(one) for one in found], more or further)


async def _follow(tx: ReadTx, view: JobRecord, link: str) -> tuple[list[JobRecord], bool]:
    found: list[JobRecord] = []
    while number := getattr(view.facts, link):
        if len(found) == MAX_JOBS:
            return found, True
        other = await tx.views.job(number)
        if other is None:
            return found, True  # Retention has removed it.
        found.append(other)
        view = other
    return found, False


def _shown(view: JobRecord) -> ChainJob:
    facts = view.facts
    return ChainJob(
        id=facts.id,
        state=str(STATE_BY_CODE[view.state]),
        attempts=shown_attempt(newest_attempt(facts, view.lease), facts.handed_back),
        created_at=format_moment(facts.created_at),
        finished_at=None if view.finished_at is None else format_moment(view.finished_at),
    )
