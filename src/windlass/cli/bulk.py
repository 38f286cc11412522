"""Many jobs at once: which they are, how many, and whether that is meant."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

from cyclopts import Parameter

from windlass.cli.connection import Connection
from windlass.cli.job_options import Many
from windlass.cli.output import Flag, console, print_json, say
from windlass.domain.values.errors import InvalidInput
from windlass.wire.bulk import Action, BulkReply, Where

NAMES = ("queue", "task", "name", "workflow", "namespace", "submitted_by")


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which jobs are meant, where no id is given.

    Parameters
    ----------
    where
        queue=batch, task=shell, name=…, workflow=7, namespace=… or submitted_by=…; all of
        several must hold.
    state
        Only jobs in this state. May be given several times.
    label
        Only jobs with this label, name=value. May be given several times.
    dead
        The dead letters: jobs that failed for good.
    yes
        Do not ask.
    """

    where: Many = None
    state: Many = None
    label: Many = None
    dead: Flag = False
    yes: Annotated[bool, Parameter(name=["--yes", "-y"], show_default=False)] = False

    @property
    def is_given(self) -> bool:
        """Whether jobs are chosen by what they are."""
        return bool(self.where or self.state or self.label or self.dead)

    def filters(self) -> Where:
        """The filter as it is sent."""
        chosen: dict[str, Any] = {}
        for text in self.where or ():
            name, separator, value = text.partition("=")
            name = name.strip().replace("-", "_")
            if not separator or name not in NAMES:
                raise InvalidInput("where", f"NAME=VALUE with one of {', '.join(NAMES)}", text)
            chosen[name] = _number(value) if name == "workflow" else value
        return Where(state=self.state or [], label=self.label or [], dead=self.dead, **chosen)


ANY = Selection()


def choose(ids: Sequence[int], chosen: Selection) -> bool:
    """Whether jobs are chosen by a filter; one of the two ways must be taken, and only one."""
    if bool(ids) == chosen.is_given:
        got = "both" if ids else "neither"
        raise InvalidInput("jobs", "the ids of jobs, or --where, --state or --label", got)
    return chosen.is_given


def edit_many(at: Connection, action: Action, chosen: Selection, json: bool, **fields: Any) -> None:
    """Count the jobs, ask, and change them part by part."""
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
        return
    say(f"{action}: {done.applied} of {done.matched} jobs")
    for refused in done.refused:
        console.print(f"  {refused.id}: {refused.reason}", style="dim", markup=False)
    if done.refusals > len(done.refused):
        console.print(f"  and {done.refusals - len(done.refused)} more", style="dim")


def _confirm(action: str, count: int) -> None:
    question = f"{action} {count} job{'s' * (count != 1)}?"
    if not sys.stdin.isatty():
        raise InvalidInput("yes", f"--yes, to {question[:-1]} without being asked", "no terminal")
    if input(f"{question} [y/N] ").strip().lower() not in ("y", "yes"):
        raise SystemExit(1)


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise InvalidInput("where", "workflow=ID", text)
    return int(text)
