"""`windlass explain` and `windlass time`: why a job waits, and where its time went."""

from typing import Annotated, Final

from cyclopts import Parameter

from windlass.cli.commands.suggestions import suggesting
from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import JobId, Json
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import BOLD, print_json, say, say_wrapped
from windlass.domain.explain.explanation import Explanation, WorkerExplanation
from windlass.domain.values.quantities import readable_duration

WORKER: Final = "worker:"


def explain(
    target: Annotated[str, Parameter(help="A job's id, or a worker's name (or worker:NAME).")],
    /,
    *,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Explain why a job is waiting, or why a worker is idle."""
    with suggesting(at), at.client() as client:
        if target.isdigit():
            found: Explanation | WorkerExplanation = client.explain(int(target))
        else:
            found = client.explain_worker(target.removeprefix(WORKER))
    if json:
        print_json(found)
    elif isinstance(found, Explanation):
        _print_job(found)
    else:
        _print_worker(found)


def time_spent(job: JobId, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Show where a job's time went, by cause, from the event log."""
    with at.client() as client:
        found = client.job(job).time_spent()
    if json:
        print_json(found)
        return
    took = readable_duration(round(found.total * 1000))
    say(f"job {found.job} {found.state}: {took} since it was submitted", BOLD)
    rows = [
        (part.cause, readable_duration(round(part.seconds * 1000)),
         f"{100 * part.seconds / found.total:.0f} %", part.text)
        for part in found.parts
    ]  # fmt: skip
    print_table(("cause", "time", "", ""), rows, "no time has passed")
    for note in found.notes:
        say_wrapped(f"note: {note}")


def _print_job(found: Explanation) -> None:
    say_wrapped(f"job {found.job} {found.summary}", style=BOLD)
    _section("waits for", [line for one in found.waiting_for for line in (one.text, *(
        f"  because {because}" for because in one.because))])  # fmt: skip
    _section("workers", [entry.text for entry in found.workers])
    _section("limits", [entry.text for entry in found.limits])
    if found.estimated_start is not None:
        start = found.estimated_start
        first, last = _clock(start.earliest), _clock(start.latest)
        around = "" if first == last else f" (from {first} to {last})"
        _section("likely to start", [f"{_clock(start.likely)}{around}"])
    _section("note", list(found.notes))
    if found.smallest_change is not None:
        steps = found.smallest_change.steps
        lines = [step.text + (f": {step.command}" if step.command else "") for step in steps]
        _section("what would let it run", lines)


def _print_worker(found: WorkerExplanation) -> None:
    say_wrapped(f"worker {found.worker} {found.status}: {found.summary}", style=BOLD)
    _section("ready jobs", [entry.text for entry in found.work])


def _section(title: str, lines: list[str]) -> None:
    if lines:
        say(f"\n{title}:")
        for line in lines:
            say_wrapped(line.lstrip(), "    " if line.startswith(" ") else "  ")


def _clock(moment: str) -> str:
    """Shows a time to the second; more digits would pretend to be exact."""
    return f"{moment[:19].replace('T', ' ')}Z"
