"""What a file says of the workflow itself, checked as the server will check it."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from windlass.domain.job.validation import check_workflow_options
from windlass.domain.values.errors import InvalidInput
from windlass.wire.jobs import NewWorkflow
from windlass.wire.reactions import Reaction, parse_reactions
from windlass.workflows.jobs import VALIDATOR, place_in
from windlass.workflows.nodes import Faults, Misdescribed, Node

PLAIN: Final = ("name", "namespace", "priority", "key", "key_for", "fail_fast")
REACTIONS: Final = ("on_success", "on_failure", "on_end")


def check_workflow(new: NewWorkflow, node: Node, faults: Faults) -> None:
    """Notes what the server would refuse, with the line it stands on."""
    with faults, _located(node):
        check_workflow_options(
            new.name, new.namespace, new.key, new.priority, new.labels, new.key_for
        )
    for occasion in REACTIONS:
        with faults, _located(node):
            reactions = parse_reactions(getattr(new, occasion), occasion)
            for number, reaction in enumerate(reactions):
                _check_jobs(reaction, f"{occasion}[{number}].submit")


@contextmanager
def _located(node: Node) -> Iterator[None]:
    try:
        yield
    except InvalidInput as error:
        raise locate(error, node) from None


def locate(error: InvalidInput, node: Node) -> Misdescribed:
    """Returns an error about the workflow with the line it stands on."""
    field = error.field.removeprefix("workflow.")
    return Misdescribed(place_in(node, field), field, error.expected, error.got, error.hint)


def _check_jobs(reaction: Reaction, field: str) -> None:
    jobs = reaction.submit if isinstance(reaction.submit, list) else []
    for number, job in enumerate(jobs):
        VALIDATOR.validate(job, f"{field}[{number}]")
