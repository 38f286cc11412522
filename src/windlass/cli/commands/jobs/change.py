"""Commands that change jobs, by id or by filter: `cancel`, `retry`, `unblock` and `prioritize`."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final

from cyclopts import Parameter

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Flag, JobId, Json, Many, Misused, Yes
from windlass.cli.output.exit_codes import FAILED, NOT_FOUND, REFUSED
from windlass.cli.output.text import DIM, print_change, print_json, say
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import did_you_mean
from windlass.domain.values.quantities import counted
from windlass.messages.jobs import (
    Action,
    BulkReply,
    PriorityReply,
    PriorityRequest,
    UnblockRequest,
    Where,
)
from windlass.messages.workers import Changed

FILTERS: Final = ("queue", "task", "name", "workflow", "namespace", "submitted_by")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which jobs to change, if no id is given.

    Parameters
    ----------
    where
        queue=batch, task=shell, name=…, workflow=7, namespace=… or submitted_by=…
        Repeatable: all must match.
    state
        Only jobs in this state. Repeatable.
    label
        Only jobs with this label, name=value. Repeatable: all must match.
    dead
        Only dead letters: jobs that failed permanently.
    yes
        Do not ask for confirmation.
    """

    where: Many = None
    state: Many = None
    label: Many = None
    dead: Flag = False
    yes: Yes = False

    @property
    def is_given(self) -> bool:
        """Returns whether any filter was given."""
        return bool(self.where or self.state or self.label or self.dead)

    def filters(self) -> Where:
        """Returns the filter as the server expects it."""
        chosen: dict[str, Any] = {}
        for text in self.where or ():
            name, separator, value = text.partition("=")
            name = name.strip().replace("-", "_")
            if not separator or name not in FILTERS:
                hint = did_you_mean(name, FILTERS)
                expected = f"NAME=VALUE with one of {', '.join(FILTERS)}"
                raise InvalidInput("where", expected, text, hint)
            chosen[name] = _number(value) if name == "workflow" else value
        return Where(state=self.state or [], label=self.label or [], dead=self.dead, **chosen)


ANY: Final = Selection()


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput("where", "workflow=ID", text)
    return int(text)


OneJob = Annotated[int | None, Parameter(help="The job's id.")]


def cancel(
    *jobs: int,
    reason: str = "Canceled",
    chosen: Selection = ANY,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Cancel jobs by id or by filter.

    Parameters
    ----------
    jobs
        The ids of the jobs.
    reason
        Why; shown with the jobs.
    """
    if _by_filter(jobs, chosen):
        _change_many(at, "cancel", chosen, json, reason=reason)
        return
    with at.client() as client:
        reply = client.cancel(jobs, reason)
    if json:
        print_json(reply)
    else:
        for done in reply.jobs:
            how = "now" if done.applied else "already"
            say(f"{done.id}: {how} {done.state}" if done.state else f"{done.id}: does not exist")
    if any(done.state is None for done in reply.jobs):
        raise SystemExit(NOT_FOUND)


def retry(
    job: OneJob = None, /, *, chosen: Selection = ANY, at: Connection = HERE, json: Json = False
) -> None:
    """Retry an ended job as a new job that replaces it, and print the new id.

    With a filter, retry all matching jobs; without --state, only failed ones.
    """
    if _by_filter(_ids(job), chosen) or job is None:
        _change_many(at, "retry", chosen, json)
        return
    with at.client() as client:
        new = client.job(job).retry()
        if json:
            print_json(new.info())
        else:
            say(new.id)


def unblock(
    job: JobId,
    /,
    *,
    reject: Flag = False,
    reason: str = "Rejected",
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Release a job that waits for manual approval, or reject it.

    Parameters
    ----------
    reject
        Abort the job instead.
    reason
        Why it is rejected.
    """
    request = UnblockRequest(accept=not reject, reason=reason)
    print_change(at.call("POST", f"/api/v1/jobs/{job}/unblock", Changed, request), json)


def prioritize(
    job: OneJob = None,
    /,
    *,
    adjustment: int,
    chosen: Selection = ANY,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Set the priority adjustment of a job, or of all jobs that match a filter.

    Parameters
    ----------
    adjustment
        Added to the job's base priority; a negative number makes the job wait longer.
    """
    if _by_filter(_ids(job), chosen):
        _change_many(at, "prioritize", chosen, json, adjustment=adjustment)
        return
    request = PriorityRequest(adjustment=adjustment)
    done = at.call("POST", f"/api/v1/jobs/{job}/priority", PriorityReply, request)
    if json:
        print_json(done)
        return
    say(
        f"base {done.base}, adjustment {done.adjustment}, effective {done.effective}, "
        f"inherited {done.inherited:.2f}, score {done.score:.2f}"
    )


def _ids(job: int | None) -> tuple[int, ...]:
    return () if job is None else (job,)


def _by_filter(ids: Sequence[int], chosen: Selection) -> bool:
    """Returns whether a filter selects the jobs; raises unless there are either ids or a filter."""
    if bool(ids) == chosen.is_given:
        filters = "--where, --state, --label or --dead"
        if ids:
            raise Misused(f"job ids and filters exclude each other: leave out {filters}")
        raise Misused(f"no jobs are selected: give job ids, or {filters}")
    return chosen.is_given


def _change_many(
    at: Connection, action: Action, chosen: Selection, json: bool, **fields: Any
) -> None:
    """Counts the jobs, asks for confirmation, and changes them in batches."""
    where = chosen.filters()
    with at.client() as client:
        count = client.edit_many(action, where, dry_run=True, **fields).matched
        if count and not chosen.yes:
            _confirm(action, count)
        done = BulkReply(matched=0, applied=0)
        if count:
            done = client.edit_many(action, where, **fields)
    if json:
        print_json(done)
    else:
        _print_changed(action, done)
    if not done.matched and action == "prioritize":
        raise SystemExit(NOT_FOUND)  # nothing to cancel or to retry is no error
    if done.refusals:
        raise SystemExit(REFUSED)


def _print_changed(action: Action, done: BulkReply) -> None:
    already = done.matched - done.applied - done.refusals
    rest = f"; {already} needed no change" if already else ""
    say(f"{action}: {done.applied} of {counted(done.matched, 'job')}{rest}")
    for refused in done.refused:
        say(f"  {refused.id}: {refused.reason}", DIM)
    if done.refusals > len(done.refused):
        say(f"  and {done.refusals - len(done.refused)} more", DIM)


def _confirm(action: str, count: int) -> None:
    question = f"{action} {count} job{'s' * (count != 1)}?"
    if not sys.stdin.isatty():
        raise Misused(f"cannot ask without a terminal: give --yes to {question[:-1]}")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise SystemExit(FAILED)
