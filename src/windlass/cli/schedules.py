"""Commands about templates and schedules."""

from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec
from cyclopts import App, Parameter

from windlass.cli.connection import HERE, Connection
from windlass.cli.output import Flag, Json, console, print_change, print_json, print_table, say
from windlass.cli.workflow_files import Params, parameters_of
from windlass.cli.workflows import Priority, start
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput
from windlass.wire.schedules import (
    Schedule,
    ScheduleList,
    SchedulePut,
    ScheduleRequest,
    ScheduleRun,
    Template,
    TemplateList,
    TemplatePut,
    TemplateRequest,
)
from windlass.wire.workers import Changed
from windlass.workflows.inlining import describe_file

TemplateName = Annotated[str, Parameter(help="The template's name.")]
ScheduleName = Annotated[str, Parameter(help="The schedule's name.")]
Namespace = Annotated[
    str | None, Parameter(help="Which namespace is meant. Default: the token's own.")
]

templates = App(name="templates", help="Put, look at, start and remove templates of workflows.")
schedules = App(name="schedules", help="Put, look at, pause, run and remove schedules.")


@templates.command(name="put")
def put_template(
    name: TemplateName,
    file: Path,
    /,
    *,
    namespace: Namespace = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Make a new version of a template, unless the newest is the same; print its reference.

    Parameters
    ----------
    file
        YAML or JSON, as for `windlass workflow submit`. The files it names go with it.
    """
    request = TemplateRequest(body=describe_file(file))
    made = at.call("PUT", f"/api/v1/templates/{name}", TemplatePut, request, namespace=namespace)
    if json:
        print_json(made)
    else:
        say(f"{made.name}@{made.version}")


@templates.command(name="list")
@templates.default
def list_templates(
    *, namespace: Namespace = None, at: Connection = HERE, json: Json = False
) -> None:
    """List templates."""
    found = at.call("GET", "/api/v1/templates", TemplateList, namespace=namespace).templates
    if json:
        print_json(found)
        return
    rows = [
        (t.name, t.namespace, t.version, t.priority, ", ".join(t.parameters), t.created_at,
         t.created_by)
        for t in found
    ]  # fmt: skip
    columns = ("template", "namespace", "version", "priority", "parameters", "put", "by")
    print_table(columns, rows, "no templates: put one with `windlass templates put`")


@templates.command(name="show")
def show_template(
    template: str,
    /,
    *,
    namespace: Namespace = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Show a template; the secrets of its webhooks are left out.

    Parameters
    ----------
    template
        Its name, or name@version.
    """
    name, _, version = template.partition("@")
    path = f"/api/v1/templates/{name}"
    found = at.call("GET", path, Template, version=version or None, namespace=namespace)
    if json:
        print_json(found)
        return
    by = f" by {found.created_by}" if found.created_by else ""
    console.print(f"{found.name}@{found.version}, put {found.created_at}{by}", style="bold")
    say(msgspec.json.format(msgspec.json.encode(found.body), indent=2).decode())


templates.command(start, name="start")


@templates.command(name="remove")
def remove_template(
    name: TemplateName,
    /,
    *,
    namespace: Namespace = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Let a template be started no more."""
    path = f"/api/v1/templates/{name}"
    print_change(at.call("DELETE", path, Changed, namespace=namespace), json)


@schedules.command(name="put")
def put_schedule(
    name: ScheduleName,
    cron: str,
    /,
    *,
    template: str | None = None,
    param: Params = None,
    jobs: str | None = None,
    zone: str = "UTC",
    overlap: Literal["allow", "skip", "queue", "cancel"] = "skip",
    catch_up: Literal["none", "last", "all"] = "last",
    catch_up_limit: int = 100,
    priority: Priority = None,
    paused: Flag = False,
    namespace: Namespace = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Make or change a schedule and print when it runs next.

    Parameters
    ----------
    cron
        minute hour day month weekday, such as '*/15 * * * *', or @hourly, @daily, …
    template
        What it starts: a template's name, for the newest version, or name@version.
    jobs
        Instead of a template: a JSON list of jobs, or @FILE with one.
    zone
        The time zone of the cron line, such as Europe/Berlin.
    overlap
        What to do at a slot while a run has not ended: start another, skip the slot, run it
        afterwards, or cancel the one that runs.
    catch_up
        Which slots run that passed while no server was there.
    catch_up_limit
        How many slots `--catch-up all` means at most.
    priority
        Instead of the template's own: high, medium, low or a number.
    paused
        Let its slots pass until it is resumed.
    """
    request = ScheduleRequest(
        cron=cron, zone=zone, overlap=overlap, catch_up=catch_up, catch_up_limit=catch_up_limit,
        paused=paused, template=template, parameters=dict(parameters_of(param)),
        jobs=_jobs(jobs), priority=priority,
    )  # fmt: skip
    path = f"/api/v1/schedules/{name}"
    made = at.call("PUT", path, SchedulePut, request, namespace=namespace)
    if json:
        print_json(made)
    else:
        say("paused" if made.schedule.paused else f"next at {made.schedule.next_at}")


@schedules.command(name="list")
@schedules.default
def list_schedules(
    *, namespace: Namespace = None, at: Connection = HERE, json: Json = False
) -> None:
    """List schedules."""
    found = at.call("GET", "/api/v1/schedules", ScheduleList, namespace=namespace).schedules
    if json:
        print_json(found)
        return
    rows = [
        (s.name, s.namespace, s.cron, s.zone, s.template or f"{len(s.jobs)} jobs", s.overlap,
         s.catch_up, "paused" if s.paused else s.next_at)
        for s in found
    ]  # fmt: skip
    columns = ("schedule", "namespace", "cron", "zone", "starts", "overlap", "catch up", "next")
    print_table(columns, rows, "no schedules: put one with `windlass schedules put`")


@schedules.command(name="show")
def show_schedule(
    name: ScheduleName,
    /,
    *,
    namespace: Namespace = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Show a schedule and its newest runs."""
    found = at.call("GET", f"/api/v1/schedules/{name}", Schedule, namespace=namespace)
    if json:
        print_json(found)
        return
    state = "paused" if found.paused else f"next at {found.next_at}"
    console.print(f"{found.name}: {found.cron} ({found.zone}), {state}", style="bold")
    rows = [(r.slot or "by hand", r.state, r.workflow, r.reason, r.actor) for r in found.runs]
    print_table(("slot", "state", "workflow", "reason", "by"), rows, "no runs yet")


@schedules.command
def pause(
    name: ScheduleName,
    /,
    *,
    namespace: Namespace = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Let the slots of a schedule pass."""
    path = f"/api/v1/schedules/{name}/pause"
    print_change(at.call("POST", path, Changed, namespace=namespace), json)


@schedules.command
def resume(
    name: ScheduleName,
    /,
    *,
    namespace: Namespace = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Go on with the slots to come."""
    path = f"/api/v1/schedules/{name}/resume"
    print_change(at.call("POST", path, Changed, namespace=namespace), json)


@schedules.command
def run(
    name: ScheduleName,
    /,
    *,
    namespace: Namespace = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Run a schedule now, beside its slots, and print the id of the workflow."""
    path = f"/api/v1/schedules/{name}/run"
    made = at.call("POST", path, ScheduleRun, namespace=namespace)
    if json:
        print_json(made)
    elif made.workflow is not None:
        say(made.workflow)
    else:
        say(f"{made.state}: {made.reason or 'another run has not ended'}")


@schedules.command(name="remove")
def remove_schedule(
    name: ScheduleName,
    /,
    *,
    namespace: Namespace = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Forget a schedule and its runs; what it started goes on."""
    path = f"/api/v1/schedules/{name}"
    print_change(at.call("DELETE", path, Changed, namespace=namespace), json)


def _jobs(text: str | None) -> list[JobSpec]:
    if text is None:
        return []
    try:
        content: Any = Path(text[1:]).read_bytes() if text.startswith("@") else text
        return msgspec.json.decode(content, type=list[JobSpec])
    except OSError as error:
        raise InvalidInput("jobs", f"a readable file ({error.strerror})", text[1:]) from None
    except msgspec.MsgspecError as error:
        raise InvalidInput("jobs", "a JSON list of jobs", str(error)) from None
