"""`windlass workflows`: list, show, watch, start, cancel and retry workflows."""

from typing import Final

import msgspec
from cyclopts import App

from windlass.cli.commands.suggestions import suggesting
from windlass.cli.commands.workflows import from_file
from windlass.cli.options.connection import HERE, RECONNECT, Connection, WaitForServer
from windlass.cli.options.flags import Flag, Json, Limit, Many, Priority, WorkflowId
from windlass.cli.options.workflow_file import Params, parameters_of
from windlass.cli.output.tables import print_rows, print_table
from windlass.cli.output.text import print_answer, print_json, say
from windlass.cli.output.workflow_view import jobs_of, print_workflow, print_workflows, remark_on
from windlass.client.builder import split_reference
from windlass.domain.values.quantities import counted
from windlass.messages.schedules import ReactionList, StartRequest
from windlass.messages.workflows import (
    CanceledWorkflow,
    CancelWorkflow,
    RetriedWorkflow,
    RetryWorkflow,
    WorkflowList,
)

SHOWN: Final = 50

workflows = App(name="workflows", help="Submit, show, watch and manage workflows.")
workflows.command(from_file.submit)
workflows.command(from_file.add)
workflows.command(from_file.graph)
workflows.command(from_file.schema)


@workflows.command
def start(
    template: str,
    /,
    *,
    param: Params = None,
    key: str | None = None,
    key_for: str | None = None,
    priority: Priority = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Start a workflow from a template and print its id.

    Parameters
    ----------
    template
        The template's name, or name@version.
    key
        If another workflow has this key, print its id and submit nothing. A workflow has its key
        until it ends.
    key_for
        How long it keeps its key, even if it ends earlier: 90 (seconds), 15m, 6h, or forever.
    priority
        Overrides the template's priority: high, medium, low or a number.
    """
    name, version = split_reference(template)
    request = StartRequest(
        parameters=dict(parameters_of(param)), key=key, key_for=key_for, priority=priority,
        version=version,
    )  # fmt: skip
    with suggesting(at), at.client() as client:
        reply = client.run(client.asynchronous.service.start_template(name, request))
    from_file.print_submitted(reply.workflow, reply.applied or not reply.ids, at, json)


@workflows.command(name="list")
@workflows.default
def list_workflows(
    *,
    state: Many = None,
    name: str | None = None,
    label: Many = None,
    key: str | None = None,
    namespace: str | None = None,
    limit: Limit = SHOWN,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """List workflows, newest first.

    Parameters
    ----------
    state
        Only workflows in this state: queued, dispatching, canceling, completed, failed or
        canceled. Repeatable.
    name
        Only workflows with this name.
    label
        Only workflows with this label, name=value. Repeatable: all must match.
    key
        Only workflows with this key.
    namespace
        Only workflows in this namespace.
    limit
        The maximum number of workflows to show.
    """
    found = at.listed(
        "/api/v1/workflows", WorkflowList, lambda page: page.workflows, limit,
        state=state, name=name, label=label, key=key, namespace=namespace,
    )  # fmt: skip
    if json:
        print_json(found)
        return
    print_workflows(found)


@workflows.command
def show(
    workflow: WorkflowId, /, *, limit: Limit = SHOWN, at: Connection = HERE, json: Json = False
) -> None:
    """Show a workflow and its jobs.

    Parameters
    ----------
    limit
        The maximum number of jobs to show, failed and running ones first; JSON has all of them,
        as job_list.
    """
    with at.client() as client:
        info = client.workflow(workflow).info()
        if json:
            listed = jobs_of(client, workflow)
            print_json({**msgspec.to_builtins(info), "job_list": listed})
            return
        jobs = jobs_of(client, workflow, limit)
    print_workflow(info)
    say("")
    rows = [(j.id, j.state, j.name or j.task, j.attempt, j.worker, remark_on(j)) for j in jobs]
    print_table(("id", "state", "job", "attempt", "worker", "reason"), rows, "no jobs")
    if len(jobs) < info.jobs:
        say(f"{len(jobs)} of {counted(info.jobs, 'job')}; --limit shows more")


@workflows.command
def watch(
    workflow: WorkflowId,
    /,
    *,
    reconnect: WaitForServer = RECONNECT,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Follow a workflow until it ends; exits with 0 if it completes.

    Shows a live tree on a terminal, otherwise one line per change; with --json one object per
    line.
    """
    from windlass.cli.output.workflow_watch import follow

    with at.client(reconnect) as client:
        code = follow(client, workflow, json)
    raise SystemExit(code)


@workflows.command
def cancel(
    workflow: WorkflowId, /, *, reason: str = "Canceled", at: Connection = HERE, json: Json = False
) -> None:
    """Cancel a workflow: no more jobs start, and running jobs are stopped.

    Parameters
    ----------
    reason
        Why; shown with the workflow.
    """
    path = f"/api/v1/workflows/{workflow}/cancel"
    done = at.call("POST", path, CanceledWorkflow, CancelWorkflow(reason=reason))
    print_answer(done, json, f"{done.id}: {'now' if done.applied else 'already'} {done.state}")


@workflows.command
def retry(
    workflow: WorkflowId, /, *, failed: Flag = False, at: Connection = HERE, json: Json = False
) -> None:
    """Run a workflow again and print the id of the workflow that runs.

    Parameters
    ----------
    failed
        In the same workflow, run only the jobs that failed and those that never started because
        of it. Without this flag, run everything again as a new workflow.
    """
    path = f"/api/v1/workflows/{workflow}/retry"
    done = at.call("POST", path, RetriedWorkflow, RetryWorkflow(failed=failed))
    print_answer(done, json, done.id)


@workflows.command
def reactions(workflow: WorkflowId, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Show what ran when a workflow ended: follow-ups, webhooks and retries."""
    path = f"/api/v1/workflows/{workflow}/reactions"
    found = at.call("GET", path, ReactionList).reactions
    rows = [(r.run, r.on, r.kind, r.state, r.tries, r.next_at, r.result, r.message) for r in found]
    columns = ("run", "on", "kind", "state", "tries", "next", "result", "message")
    print_rows(found, json, columns, rows, "no reactions: it has none, or it has not ended yet")
