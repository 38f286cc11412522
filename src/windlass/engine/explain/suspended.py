"""Explains what the function of a suspended job waits for."""

from typing import Final

import msgspec

from windlass.domain.explain.explanation import Step, Waiting
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.steps import StepKind, StepRow, StepState
from windlass.domain.values.quantities import counted, format_moment
from windlass.engine.explain.reasons import Reasons
from windlass.store.sql.transaction import ReadTx

SUSPENDED: Final = State.SUSPENDED.code


async def what_it_waits_for(tx: ReadTx, job: int, attempt: int) -> Reasons:
    """Returns the waits that the job's last attempt ended with."""
    steps = (await tx.steps.of_jobs([job])).get(job, ())
    pending = [s for s in steps if s.state == StepState.PENDING and s.attempt == attempt]
    return Reasons(
        tuple(_waiting(step) for step in pending), tuple(_helps(step) for step in pending)
    )


def _waiting(step: StepRow) -> Waiting:
    since = f"since {format_moment(step.asked_at)}"
    until = None if step.until is None else format_moment(step.until)
    limit = "" if until is None else f", at most until {until}"
    if step.kind == StepKind.SLEEP:
        return Waiting(kind="sleep", text=f"the end of its sleep at {until}", until=until)
    if step.kind == StepKind.SIGNAL:
        text = f"signal {step.name} {since}{limit}"
        return Waiting(kind="signal", text=text, until=until)
    if step.kind == StepKind.JOBS:
        text = f"the end of {_jobs(step)} {since}{limit}"
        return Waiting(kind="jobs", text=text, until=until)
    text = f"an answer to {_question(step)!r} {since}{limit}"
    return Waiting(kind="question", text=text, until=until)


def _helps(step: StepRow) -> Step:
    if step.kind == StepKind.SLEEP and step.until is not None:
        until = format_moment(step.until)
        return Step(action="wait", text=f"wait until {until}", until=until)
    if step.kind == StepKind.SIGNAL:
        command = f"windlass send {step.name}"
        return Step(action="send_signal", text=f"send signal {step.name}", command=command)
    if step.kind == StepKind.JOBS:
        return Step(action="wait", text=f"wait for {_jobs(step)}", until=None)
    command = f"windlass answer {step.job}"
    return Step(action="answer", text=f"answer its question {_question(step)!r}", command=command)


def _jobs(step: StepRow) -> str:
    first, *others = step.jobs
    return f"job {first}" + (f" and {counted(len(others), 'other')}" if others else "")


def _question(step: StepRow) -> str:
    return str(msgspec.json.decode(step.body or b"{}").get("question", ""))
