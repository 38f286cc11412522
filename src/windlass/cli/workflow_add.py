"""`windlass workflow add`: jobs of a file for a workflow that runs already."""

import msgspec

from windlass.cli.connection import HERE, Connection
from windlass.cli.inside_job import add_children, agent_of
from windlass.cli.output import Flag, Json, print_json, say
from windlass.cli.workflow_files import File, Params, in_words_of_file, parameters_of
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput
from windlass.wire.jobs import SubmitReply
from windlass.workflows.expansion import expand_file


def add(
    file: File,
    /,
    *,
    to: int | None = None,
    param: Params = None,
    key: str | None = None,
    reopen: Flag = False,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Add the jobs that a file describes to a workflow that runs, and print their ids.

    Inside of a job, and with no server named, that is the job's own workflow; priorities with
    a sign (+1) are then relative to the job's. Of the file, only its jobs, parameters and
    priority count.

    Parameters
    ----------
    file
        YAML or JSON; - reads it from standard input.
    to
        The id of the workflow. Default: that of the job this command runs in.
    key
        Jobs that were added to the workflow with this key before are not added again: their
        ids are printed.
    reopen
        Also if the workflow has ended.
    """
    made = expand_file(file, parameters_of(param))
    jobs = [_with_base(job, made.workflow.priority) for job in made.jobs]
    agent = None if to is not None else agent_of(at)
    try:
        if agent is not None:
            add_children(agent, jobs, key, json)
            return
        reply = _add_from_outside(jobs, to, key, reopen, at)
    except InvalidInput as error:
        raise in_words_of_file(error, made) from None
    if json:
        print_json(reply)
    else:
        say("\n".join(map(str, reply.ids)))


def _add_from_outside(
    jobs: list[JobSpec], to: int | None, key: str | None, reopen: bool, at: Connection
) -> SubmitReply:
    if to is None:
        raise InvalidInput("--to", "the id of a workflow, outside of jobs", "nothing")
    with at.client() as client:
        workflow = client.asynchronous.workflow(to)
        return client.run(workflow.add(jobs, key=key, reopen=reopen))


def _with_base(job: JobSpec, priority: int | str | None) -> JobSpec:
    if job.priority is not None or priority is None:
        return job
    return msgspec.structs.replace(job, priority=priority)
