"""The `windlass workflows` commands that read a workflow file: submit, add, graph, schema."""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import Parameter

from windlass.cli.commands.jobs.submit import add_children, agent_of
from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Flag, Json, Misused, Priority
from windlass.cli.options.workflow_file import File, Params, locate_error, parameters_of
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_answer, print_json, say, warn
from windlass.cli.output.workflow_view import jobs_of
from windlass.domain.job.forms import canonical_window
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.rank import parse_priority
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import check_name
from windlass.domain.values.quantities import counted
from windlass.messages.jobs import SubmitReply, SubmitRequest
from windlass.workflows.expansion import expand_file
from windlass.workflows.format import published
from windlass.workflows.graph import FORMATS, graph_of_jobs, graph_of_requests

NAMES_SHOWN = 3


def submit(
    file: File,
    /,
    *,
    param: Params = None,
    key: str | None = None,
    key_for: str | None = None,
    priority: Priority = None,
    dry_run: Flag = False,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Submit a workflow from a file and print its id.

    Parameters
    ----------
    file
        A YAML or JSON file; - reads standard input.
    key
        If another workflow has this key, print its id and submit nothing. A workflow has its key
        until it ends.
    key_for
        How long it keeps its key, even if it ends earlier: 90 (seconds), 15m, 6h, or forever.
    priority
        The base priority of jobs that set none: high, medium, low or a number.
    dry_run
        Show the jobs instead, without contacting a server.
    """
    if key is not None:
        check_name("--key", key)
    if priority is not None:
        parse_priority(priority, "--priority")
    made = expand_file(file, parameters_of(param))
    changes = {"key": key, "key_for": key_for, "priority": priority}
    given = {name: value for name, value in changes.items() if value is not None}
    new = msgspec.structs.replace(made.workflow, **given)
    canonical_window(new.key_for, new.key, "--key-for")
    if dry_run:
        _print_plan(SubmitRequest(jobs=made.jobs, workflow=new), json)
        return
    with at.client() as client:
        try:
            reply = client.submit_workflow(new, made.jobs)
        except InvalidInput as error:
            raise locate_error(error, made) from None
    applied = new.key is None or not reply.ids or any(reply.applied)
    print_submitted(reply.workflow or 0, applied, at, json)


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
    """Add the jobs of a file to a running workflow and print their ids.

    Inside a job, unless you name a server, that is the job's own workflow; a priority with a sign
    (+1) is then relative to the job's. Only the jobs, parameters and priority of the file are
    used.

    Parameters
    ----------
    file
        A YAML or JSON file; - reads standard input.
    to
        The id of the workflow. Default: the workflow of the job that runs this command.
    key
        If jobs were already added to the workflow with this key, print their ids and add nothing.
    reopen
        Add the jobs even if the workflow has ended.
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
        raise locate_error(error, made) from None
    print_answer(reply, json, "\n".join(map(str, reply.ids)))


def graph(
    source: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    format: Literal["dot", "mermaid"] = "dot",  # noqa: A002 - the option's name
    param: Params = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Print the graph of a workflow.

    Parameters
    ----------
    source
        A workflow's id, or a workflow file (- reads standard input).
    format
        dot for Graphviz, or mermaid.
    """
    if source.isascii() and source.isdigit():
        with at.client() as client:
            info = client.workflow(int(source)).info()
            drawn = graph_of_jobs(info.name, jobs_of(client, info.id))
    else:
        made = expand_file(Path(source), parameters_of(param))
        drawn = graph_of_requests(made.workflow.name, made.jobs)
    print_answer(drawn, json, FORMATS[format](drawn))


def schema() -> None:
    """Print the JSON schema of workflow files, for editors and other tools."""
    print_json(published())


def print_submitted(number: int, applied: bool, at: Connection, json: bool) -> None:
    """Prints the id of a workflow, and a warning if it already existed."""
    if not applied:
        warn(f"workflow {number} was submitted before and has this key")
    if json:
        with at.client() as client:
            print_json(client.workflow(number).info())
    else:
        say(number)


def _add_from_outside(
    jobs: list[JobSpec], to: int | None, key: str | None, reopen: bool, at: Connection
) -> SubmitReply:
    if to is None:
        raise Misused("no job runs this command: give the workflow's id with --to")
    with at.client() as client:
        return client.workflow(to).add_with_reply(jobs, key=key, reopen=reopen)


def _with_base(job: JobSpec, priority: int | str | None) -> JobSpec:
    if job.priority is not None or priority is None:
        return job
    return msgspec.structs.replace(job, priority=priority)


def _print_plan(plan: SubmitRequest, json: bool) -> None:
    if json:
        print_json(plan)
        return
    rows = [(j.name, _command_of(j.task, j.args), _names(j.after), _names(j.after_any))
            for j in plan.jobs]  # fmt: skip
    print_table(("job", "runs", "after", "after any"), rows, "no jobs")
    count = len(plan.jobs)
    say(f"{counted(count, 'job')}; nothing was submitted")


def _names(references: tuple[int | str, ...]) -> str:
    shown = ", ".join(map(str, references[:NAMES_SHOWN]))
    more = len(references) - NAMES_SHOWN
    return f"{shown} and {more} more" if more > 0 else shown


def _command_of(task: str, args: Any) -> str:
    words = args.get("argv") if isinstance(args, dict) and task == "shell" else None
    return " ".join(words) if words else task
