"""The agent of the job that this program runs in, which adds jobs to the job's own workflow."""

import os
from collections.abc import Sequence
from typing import NamedTuple

from windlass.client.transport import Transport
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import Conflict, Unreachable
from windlass.messages.jobs import SubmitReply, SubmitRequest

AGENT_S = 60.0  # an agent keeps trying for about 15 s when its server does not answer


class OwnAgent(NamedTuple):
    """Its socket, and the token of this attempt."""

    socket: str
    token: str

    async def submit(self, jobs: Sequence[JobSpec], key: str | None) -> SubmitReply:
        """Adds jobs to the workflow; a key used before returns the jobs it stands for."""
        transport = Transport("http://agent", self.token, socket=self.socket)
        request = SubmitRequest(jobs=list(jobs), key=key)
        try:
            return await transport.call(
                "POST", "/api/v1/jobs", SubmitReply, request, timeout=AGENT_S
            )
        except Unreachable as error:
            raise Unreachable(
                f"the agent of this job does not answer at {self.socket}: it has ended, or the "
                "socket is not there in this container"
            ) from error
        finally:
            await transport.close()


def own_agent() -> OwnAgent | None:
    """Returns the agent of the job that this process belongs to; None outside jobs."""
    socket, token = os.environ.get("WINDLASS_AGENT"), os.environ.get("WINDLASS_AGENT_TOKEN")
    if socket is None:
        return None
    if token is None:
        message = "expected WINDLASS_AGENT_TOKEN beside WINDLASS_AGENT, as jobs have them"
        raise Conflict("no_agent_token", message)
    return OwnAgent(socket, token)
