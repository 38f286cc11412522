"""What we know about a wait: its causes, the steps to end it, and who could run the job."""

from collections.abc import Sequence
from typing import NamedTuple

from windlass.domain.access.rights import Action
from windlass.domain.explain.explanation import LimitEntry, Request, Step, Waiting
from windlass.domain.explain.forecast import Line
from windlass.domain.explain.reasons import Group
from windlass.domain.rows.statistics import Summary


class Expected(NamedTuple):
    """The jobs ahead of a job, and the usual run time of its kind."""

    line: Line
    own: Summary | None


class Reasons(NamedTuple):
    """What a job waits for, and what would end the wait."""

    waiting: tuple[Waiting, ...] = ()
    steps: tuple[Step, ...] = ()
    limits: tuple[LimitEntry, ...] = ()
    groups: tuple[Group, ...] = ()
    expected: Expected | None = None


def together(parts: Sequence[Reasons]) -> Reasons:
    """Joins several reasons; a step that two of them need appears once."""
    steps = {step.text: step for part in parts for step in part.steps}
    return Reasons(
        tuple(one for part in parts for one in part.waiting),
        tuple(steps.values()),
        tuple(one for part in parts for one in part.limits),
        tuple(one for part in parts for one in part.groups),
        next((part.expected for part in parts if part.expected is not None), None),
    )


def operator_asked(job: int, namespace: str) -> Reasons:
    """Explains a job that waits for an operator."""
    request = Request(
        method="POST", path=f"/api/v1/jobs/{job}/unblock", body={}, needs=Action.UNBLOCK_JOBS,
        namespace=namespace,
    )  # fmt: skip
    step = Step(
        action="unblock", text=f"accept job {job}", job=job, command=f"windlass unblock {job}",
        request=request,
    )  # fmt: skip
    return Reasons((Waiting(kind="operator", text="an operator to accept it", job=job),), (step,))


def free_slot(holder: int) -> Step:
    """Returns the step that frees a slot: end the job that holds it."""
    return Step(
        action="free_slot", text=f"wait for job {holder} to end, or cancel it", job=holder,
        command=f"windlass cancel {holder}",
    )  # fmt: skip
