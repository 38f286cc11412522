"""Jobs that a running job adds to its own workflow, fenced by its attempt.

We check the lease in the transaction that writes the children, so an attempt that lost its lease
cannot add any. A key is unique in the workflow: a second attempt, or a job that supersedes the
first, gets the existing children as the answer.
"""

from collections.abc import Sequence

import msgspec

from windlass.domain.job.job import JobSpec
from windlass.domain.job.validation import ValidatedJob
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.records import JobFacts
from windlass.domain.values.errors import Conflict, NotFound, WindlassError
from windlass.engine.attempts.attempt_files import is_held, lease_lost
from windlass.engine.submit.submission import Submission, Submitted
from windlass.engine.submit.write_jobs import submit
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.gateway import Holder
from windlass.ports.loop_time import LongList

RUNNING = State.RUNNING.code
APART = "\x1d"  # does not occur in keys of users


def as_children(specs: Sequence[JobSpec], parent: JobFacts, namespace: str) -> list[JobSpec]:
    """Returns these jobs as children: in the parent's namespace and workflow."""
    return LongList(
        msgspec.structs.replace(
            spec, parent=parent.id, workflow=parent.workflow, namespace=namespace
        )
        for spec in specs
    )


def key_of(parent: JobFacts, key: str) -> str:
    """Returns the submission's key: unique in the workflow, or else in the job."""
    flow = parent.workflow
    scope = f"job {parent.id}" if flow is None else f"workflow {flow}"
    return f"{APART}{scope}{APART}{key}"


async def submit_children(
    work: Work, holder: Holder, jobs: Sequence[ValidatedJob], key: str
) -> Submitted:
    """Writes the children if the holder still runs the attempt."""
    named = {ref for job in jobs for ref in (*job.spec.after, *job.spec.after_any)}
    others = {ref for ref in named if isinstance(ref, int)}
    facts = await work.tx.jobs.share(sorted({holder.job, *others}))
    if holder.job not in facts:
        raise NotFound("job", holder.job)
    lease = (await work.tx.leases.lock([holder.job])).get(holder.job)
    if lease is None or not is_held(lease, holder):
        raise lease_lost(holder)
    if lease.state != RUNNING:
        raise Conflict("stopping", f"job {holder.job} was told to stop: it cannot add jobs")
    submission = Submission(jobs, None, key_of(facts[holder.job], key))
    (done,) = await submit(work, [submission])
    if isinstance(done, WindlassError):
        raise done
    return done
