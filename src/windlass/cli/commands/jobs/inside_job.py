"""Commands that run inside a job: what they submit joins the job's own workflow."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import nullcontext

from windlass.cli.options.connection import Connection
from windlass.cli.output.text import print_json, say
from windlass.client.own_agent import OwnAgent, own_agent
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput
from windlass.tasks.submitting import about_one


def agent_of(at: Connection) -> OwnAgent | None:
    """Returns the agent of the job that runs this command, unless a server is named."""
    named = at.server or at.data or os.environ.get("WINDLASS_SERVER")
    return None if named or os.environ.get("WINDLASS_DATA") else own_agent()


def add_children(agent: OwnAgent, jobs: Sequence[JobSpec], key: str | None, json: bool) -> None:
    """Adds jobs to the workflow of the job that runs this command, and prints their ids."""
    for job in jobs:
        if job.workflow is not None:
            expected = "unset inside a job, which adds to its own workflow (or pass --server)"
            raise InvalidInput("workflow", expected, job.workflow)
    with about_one(jobs[0]) if len(jobs) == 1 else nullcontext():
        reply = asyncio.run(agent.submit(jobs, key))
    if json:
        print_json(reply)
    else:
        say("\n".join(map(str, reply.ids)))
