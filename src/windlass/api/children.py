"""Submits jobs that a running job adds to its own workflow."""

import msgspec

from windlass.api.parse import check_count, job_spec
from windlass.api.rights import Rights
from windlass.domain.access.rights import Identity, Role
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput
from windlass.engine.engine import Engine
from windlass.ports.gateway import Holder
from windlass.ports.long_lists import LongList
from windlass.ports.loop_time import aside
from windlass.wire.jobs import SubmitReply, SubmitRequest


class Children:
    """Submits on behalf of running jobs, with the rights of their namespace."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._rights = Rights(engine)

    async def submit(self, holder: Holder, request: SubmitRequest) -> SubmitReply:
        """Submits children of the job that the holder runs."""
        check_count("jobs", request.jobs, self._engine.config)
        if request.workflow is not None:
            raise InvalidInput("workflow", "unset: children join that of their parent", "one")
        if request.key is None:
            raise InvalidInput("key", "given", "nothing")
        namespace = await self._engine.jobs.namespace_of(holder.job)
        who = Identity(0, f"job {holder.job}", Role.SUBMITTER, (namespace,))
        numbered = enumerate(request.jobs)
        specs = await aside(
            len(request.jobs),
            lambda: LongList(job_spec(_alone(job), who, f"jobs[{n}]") for n, job in numbered),
        )
        await self._rights.check_children(holder.job, specs, who)
        done = await self._engine.jobs.submit_children(holder, specs, request.key)
        return SubmitReply(list(done.ids), list(done.applied), done.workflow)


def _alone(job: JobSpec) -> JobSpec:
    """Returns a job without a parent and a workflow of its own: children have those they have."""
    return msgspec.structs.replace(job, parent=None, workflow=None)
