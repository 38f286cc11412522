"""Commands about workflows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import App, Parameter

from windlass.cli.connection import HERE, Connection
from windlass.cli.job_options import Many
from windlass.cli.output import Flag, Json, console, errors, print_json, print_table, say
from windlass.cli.workflow_add import add
from windlass.cli.workflow_files import File, Params, in_words_of_file, parameters_of
from windlass.cli.workflow_watch import all_jobs, follow, progress_of, remark_on
from windlass.domain.values.errors import InvalidInput
from windlass.wire.jobs import SubmitRequest
from windlass.wire.schedules import ReactionList, StartRequest
from windlass.wire.workflows import (
    CanceledWorkflow,
    CancelWorkflow,
    RetriedWorkflow,
    RetryWorkflow,
    Workflow,
    WorkflowList,
)
from windlass.workflows.expansion import expand_file
from windlass.workflows.graph import FORMATS, graph_of_jobs, graph_of_requests
from windlass.workflows.schema import published

WorkflowId = Annotated[int, Parameter(help="The workflow's id.")]
Priority = Annotated[str | None, Parameter(allow_leading_hyphen=True)]

SHOWN = 50

workflow = App(name="workflow", help="Submit, watch and manage workflows.")
workflow.command(add)


@workflow.command
def submit(
    file: File,
    /,
    *,
    param: Params = None,
    key: str | None = None,
    priority: Priority = None,
    dry_run: Flag = False,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Submit the workflow that a file describes and print its id.

    Parameters
    ----------
    file
        YAML or JSON; - reads it from standard input.
    key
        While a workflow with this key has not ended, its id is printed and nothing is submitted.
    priority
        The base of jobs that name none: high, medium, low or a number.
    dry_run
        Show the jobs instead; no server is asked.
    """
    made = expand_file(file, parameters_of(param))
    changes = {"key": key, "priority": priority}
    said = {name: value for name, value in changes.items() if value is not None}
    new = msgspec.structs.replace(made.workflow, **said)
    if dry_run:
        _print_plan(SubmitRequest(jobs=made.jobs, workflow=new), json)
        return
    with at.client() as client:
        try:
            reply = client.run(client.asynchronous.submit_workflow(new, made.jobs))
        except InvalidInput as error:
            raise in_words_of_file(error, made) from None
    applied = new.key is None or not reply.ids or any(reply.applied)
    _print_submitted(reply.workflow or 0, applied, at, json)


@workflow.command
def start(
    template: str,
    /,
    *,
    param: Params = None,
    key: str | None = None,
    priority: Priority = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Start a workflow from a template and print its id.

    Parameters
    ----------
    template
        Its name, or name@version.
    key
        While a workflow with this key has not ended, its id is printed and nothing is submitted.
    priority
        Instead of the template's own: high, medium, low or a number.
    """
    name, _, version = template.partition("@")
    if version and not (version.isascii() and version.isdigit()):
        raise InvalidInput("template", "NAME or NAME@VERSION", template)
    request = StartRequest(
        parameters=dict(parameters_of(param)), key=key, priority=priority,
        version=int(version or 0),
    )  # fmt: skip
    with at.client() as client:
        reply = client.run(client.asynchronous.planning.start_template(name, request))
    _print_submitted(reply.workflow, reply.applied or not reply.ids, at, json)


@workflow.command(name="list")
@workflow.default
def list_workflows(
    *,
    state: Many = None,
    name: str | None = None,
    label: Many = None,
    key: str | None = None,
    namespace: str | None = None,
    limit: int = SHOWN,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """List workflows, newest first.

    Parameters
    ----------
    state
        Only those in this state: queued, dispatching, canceling, complete, failed, canceled.
    name
        Only those with this name.
    label
        Only those with this label, name=value.
    key
        Only those with this key.
    namespace
        Only those of this namespace.
    limit
        How many at most.
    """
    found: list[Workflow] = []
    after: str | None = None
    while len(found) < limit:
        page = at.call(
            "GET", "/api/v1/workflows", WorkflowList, state=state, name=name, label=label,
            key=key, namespace=namespace, limit=min(limit - len(found), 1_000), after=after,
        )  # fmt: skip
        found += page.workflows
        after = page.next
        if after is None:
            break
    if json:
        print_json(found)
        return
    rows = [
        (w.id, w.state, w.name, progress_of(w), w.priority, w.created_at, w.finished_at, w.reason)
        for w in found
    ]
    columns = ("id", "state", "workflow", "jobs", "prio", "created", "finished", "reason")
    print_table(columns, rows, "no workflows")


@workflow.command
def show(
    number: WorkflowId,
    /,
    *,
    limit: int = SHOWN,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Show one workflow and its jobs.

    Parameters
    ----------
    limit
        How many of its jobs at most.
    """
    info = _info(number, at)
    if json:
        print_json(info)
        return
    _print_workflow(info)
    jobs = all_jobs(at, number, limit)
    say("")
    rows = [(j.id, j.state, j.name or j.task, j.attempt, j.worker, remark_on(j)) for j in jobs]
    print_table(("id", "state", "job", "attempt", "worker", "reason"), rows, "no jobs")
    if len(jobs) < info.jobs:
        say(f"{len(jobs)} of {info.jobs} jobs; --limit shows more")


@workflow.command
def watch(number: WorkflowId, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Follow a workflow until it ends; exits with 0 if it completes.

    A live tree on a terminal, else a line for each change, with --json one object a line.
    """
    raise SystemExit(follow(at, number, json))


@workflow.command
def cancel(
    number: WorkflowId,
    /,
    *,
    reason: str = "Canceled",
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Cancel a workflow: nothing new starts, and what runs is told to stop.

    Parameters
    ----------
    reason
        Why, as it is shown with it.
    """
    path = f"/api/v1/workflows/{number}/cancel"
    done = at.call("POST", path, CanceledWorkflow, CancelWorkflow(reason=reason))
    if json:
        print_json(done)
    else:
        say(f"{done.id}: {'now' if done.applied else 'already'} {done.state}")


@workflow.command
def retry(
    number: WorkflowId, /, *, failed: Flag = False, at: Connection = HERE, json: Json = False
) -> None:
    """Run a workflow again and print the id of the one that runs.

    Parameters
    ----------
    failed
        Only what failed, and what was not started because of it, in the same workflow.
        Otherwise all of it, as a new workflow.
    """
    path = f"/api/v1/workflows/{number}/retry"
    done = at.call("POST", path, RetriedWorkflow, RetryWorkflow(failed=failed))
    if json:
        print_json(done)
    else:
        say(done.id)


@workflow.command
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
        The id of a workflow, or a file (- for standard input).
    format
        For Graphviz (dot) or for Mermaid.
    """
    if source.isascii() and source.isdigit():
        info = _info(int(source), at)
        drawn = graph_of_jobs(info.name, all_jobs(at, info.id))
    else:
        made = expand_file(Path(source), parameters_of(param))
        drawn = graph_of_requests(made.workflow.name, made.jobs)
    if json:
        print_json(drawn)
    else:
        say(FORMATS[format](drawn))


@workflow.command
def schema() -> None:
    """Print the JSON schema of workflow files, for editors and other tools."""
    print_json(published())


@workflow.command
def reactions(number: WorkflowId, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Show what followed the ends of a workflow: follow-ups, webhooks and retries."""
    path = f"/api/v1/workflows/{number}/reactions"
    found = at.call("GET", path, ReactionList).reactions
    if json:
        print_json(found)
        return
    rows = [(r.run, r.on, r.kind, r.state, r.tries, r.next_at, r.result, r.message) for r in found]
    columns = ("run", "on", "kind", "state", "tries", "next", "result", "message")
    print_table(columns, rows, "nothing follows its ends, or it has not ended yet")


def _print_submitted(number: int, applied: bool, at: Connection, json: bool) -> None:
    if not applied:
        said = f"workflow {number} was submitted before with this key and has not ended"
        errors.print(said, markup=False, highlight=False, soft_wrap=True)
    if json:
        print_json(_info(number, at))
    else:
        say(number)


def _print_plan(plan: SubmitRequest, json: bool) -> None:
    if json:
        print_json(plan)
        return
    rows = [(j.name, _what(j.task, j.args), _names(j.after), _names(j.after_any))
            for j in plan.jobs]  # fmt: skip
    print_table(("job", "runs", "after", "after any"), rows, "no jobs")
    say(f"{len(plan.jobs)} jobs; nothing was submitted")


def _names(references: Sequence[int | str]) -> str:
    shown = ", ".join(map(str, references[:3]))
    return f"{shown} and {len(references) - 3} more" if len(references) > 3 else shown


def _what(task: str, args: Any) -> str:
    words = args.get("argv") if isinstance(args, dict) and task == "shell" else None
    return " ".join(words) if words else task


def _print_workflow(info: Workflow) -> None:
    console.print(f"workflow {info.id} {info.name}", style="bold", markup=False)
    counts = ", ".join(f"{count} {state}" for state, count in info.counts.items() if count)
    facts: list[tuple[str, Any]] = [
        ("state", info.state),
        ("jobs", f"{progress_of(info)} ({counts})" if counts else progress_of(info)),
        ("priority", info.priority),
        ("key", info.key),
        ("namespace", info.namespace),
        ("run", info.run),
        ("fail fast", "yes" if info.fail_fast else None),
        ("labels", ", ".join(f"{n}={v}" for n, v in info.labels.items()) or None),
        ("template", info.template),
        ("parameters", msgspec.json.encode(info.parameters).decode() if info.parameters else None),
        ("submitted by", info.submitted_by),
        ("created", info.created_at),
        ("finished", info.finished_at),
        ("reason", info.reason),
    ]
    print_table(("", ""), [(name, value) for name, value in facts if value is not None], "")


def _info(number: int, at: Connection) -> Workflow:
    return at.call("GET", f"/api/v1/workflows/{number}", Workflow)
