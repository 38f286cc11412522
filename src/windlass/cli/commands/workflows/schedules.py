"""`windlass schedules`: workflows that start at set times."""

from pathlib import Path
from typing import Any, Literal

import msgspec
from cyclopts import App

from windlass.cli.commands.suggestions import suggesting
from windlass.cli.options.connection import DEFAULT_PLACE, Place, ScheduleName
from windlass.cli.options.flags import Flag, Json, Priority
from windlass.cli.options.workflow_file import Params, parameters_of
from windlass.cli.output.tables import print_rows, print_table
from windlass.cli.output.text import BOLD, print_answer, print_change, print_json, say
from windlass.domain.job.job import JobSpec
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import counted
from windlass.messages.schedules import (
    Schedule,
    ScheduleList,
    SchedulePut,
    ScheduleRequest,
    ScheduleRun,
)
from windlass.messages.workers import Changed

schedules = App(name="schedules", help="Create, show, pause, run and delete schedules.")


@schedules.command(name="apply")
def apply_schedule(
    name: ScheduleName,
    cron: str | None = None,
    /,
    *,
    every: str | None = None,
    template: str | None = None,
    param: Params = None,
    jobs: str | None = None,
    zone: str = "UTC",
    overlap: Literal["allow", "skip", "queue", "cancel"] = "skip",
    catch_up: Literal["none", "last", "all"] = "last",
    catch_up_limit: int = 100,
    priority: Priority = None,
    paused: Flag = False,
    at: Place = DEFAULT_PLACE,
    json: Json = False,
) -> None:
    """Create or change a schedule and print when it runs next.

    Parameters
    ----------
    cron
        minute hour day month weekday, such as '*/15 * * * *', or @hourly, @daily, …
    every
        Instead of a cron expression: an interval such as 90m or 10s, counted from the schedule's
        creation.
    template
        The template to start: its name, for the newest version, or name@version.
    jobs
        Instead of a template: a JSON list of jobs, or @FILE to read it from a file.
    zone
        The time zone of the cron expression, such as Europe/Berlin.
    overlap
        What to do if the previous run has not ended: start another (allow), skip this slot, run it
        afterwards (queue), or cancel the previous run.
    catch_up
        Which missed slots to run after no server was running: none, the last one or all.
    catch_up_limit
        The maximum number of slots for `--catch-up all`.
    priority
        Overrides the template's priority: high, medium, low or a number.
    paused
        Start nothing until it is resumed.
    """
    request = ScheduleRequest(
        cron=cron, every=every, zone=zone, overlap=overlap, catch_up=catch_up,
        catch_up_limit=catch_up_limit, paused=paused, template=template,
        parameters=dict(parameters_of(param)), jobs=_jobs(jobs), priority=priority,
    )  # fmt: skip
    path = f"/api/v1/schedules/{name}"
    with suggesting(at):
        made = at.call("PUT", path, SchedulePut, request)
    print_answer(
        made, json, "paused" if made.schedule.paused else f"next at {made.schedule.next_at}"
    )


@schedules.command(name="list")
@schedules.default
def list_schedules(*, at: Place = DEFAULT_PLACE, json: Json = False) -> None:
    """List schedules."""
    found = at.call("GET", "/api/v1/schedules", ScheduleList).schedules
    rows = [
        (s.name, s.namespace, *_times(s), s.template or counted(len(s.jobs), "job"), s.overlap,
         s.catch_up, "paused" if s.paused else s.next_at)
        for s in found
    ]  # fmt: skip
    columns = ("schedule", "namespace", "times", "zone", "starts", "overlap", "catch up", "next")
    print_rows(
        found, json, columns, rows, "no schedules: create one with `windlass schedules apply`"
    )


@schedules.command(name="show")
def show_schedule(name: ScheduleName, /, *, at: Place = DEFAULT_PLACE, json: Json = False) -> None:
    """Show a schedule and its latest runs."""
    with suggesting(at):
        found = at.call("GET", f"/api/v1/schedules/{name}", Schedule)
    if json:
        print_json(found)
        return
    state = "paused" if found.paused else f"next at {found.next_at}"
    times, zone = _times(found)
    say(f"{found.name}: {times}{zone and f' ({zone})'}, {state}", BOLD)
    rows = [(r.slot or "manual", r.state, r.workflow, r.reason, r.actor) for r in found.runs]
    print_table(("slot", "state", "workflow", "reason", "by"), rows, "no runs yet")


@schedules.command
def pause(name: ScheduleName, /, *, at: Place = DEFAULT_PLACE, json: Json = False) -> None:
    """Pause a schedule: its slots pass without a run."""
    _change("POST", f"{name}/pause", at, json)


@schedules.command
def resume(name: ScheduleName, /, *, at: Place = DEFAULT_PLACE, json: Json = False) -> None:
    """Resume a paused schedule with its next slot."""
    _change("POST", f"{name}/resume", at, json)


@schedules.command
def run(name: ScheduleName, /, *, at: Place = DEFAULT_PLACE, json: Json = False) -> None:
    """Run a schedule now, in addition to its slots, and print the workflow's id."""
    path = f"/api/v1/schedules/{name}/run"
    with suggesting(at):
        made = at.call("POST", path, ScheduleRun)
    if json:
        print_json(made)
    elif made.workflow is not None:
        say(made.workflow)
    else:
        say(f"{made.state}: {made.reason or 'the previous run has not ended'}")


@schedules.command(name="delete")
def delete_schedule(
    name: ScheduleName, /, *, at: Place = DEFAULT_PLACE, json: Json = False
) -> None:
    """Delete a schedule and its history; workflows that it started continue."""
    _change("DELETE", name, at, json)


schedules.command(apply_schedule, name="put", show=False)
schedules.command(delete_schedule, name="remove", show=False)


def _change(method: str, path: str, at: Place, json: bool) -> None:
    with suggesting(at):
        print_change(at.call(method, f"/api/v1/schedules/{path}", Changed), json)


def _times(schedule: Schedule) -> tuple[str, str]:
    """Returns the cron line and its zone, or the interval, which has none."""
    if schedule.every is not None:
        return f"every {schedule.every}", ""
    return schedule.cron or "", schedule.zone


def _jobs(text: str | None) -> list[JobSpec]:
    if text is None:
        return []
    try:
        content: Any = Path(text[1:]).read_bytes() if text.startswith("@") else text
        return convert(msgspec.json.decode(content), list[JobSpec], "--jobs")
    except OSError as error:
        raise InvalidInput("--jobs", f"a readable file ({error.strerror})", text[1:]) from None
    except msgspec.DecodeError as error:
        raise InvalidInput("--jobs", "a JSON list of jobs", str(error)) from None
