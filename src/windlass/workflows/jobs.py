"""A job of a file, and the workflow itself, as submitted: checked as the server will check it."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

import msgspec

from windlass.domain.config import Config
from windlass.domain.job.forms import LABELS, Form
from windlass.domain.job.job import OPTIONS, JobSpec, canonical_options
from windlass.domain.job.validation import Validator, check_workflow_options
from windlass.domain.tasks.ffmpeg import FfmpegTask
from windlass.domain.tasks.gstreamer import GstreamerTask
from windlass.domain.tasks.media import MediaTask
from windlass.domain.tasks.python import PythonTask
from windlass.domain.tasks.references import TEXT
from windlass.domain.tasks.shell import ShellTask
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import check_name
from windlass.messages.jobs import NewWorkflow
from windlass.messages.reactions import Reaction, parse_reactions
from windlass.workflows.format import OF_COMMANDS
from windlass.workflows.nodes import Faults, Misdescribed, Node, Place, Referring, plain
from windlass.workflows.substitution import SHELL

_REFERENCES: Final = ("after", "after_any")  # `references.py` finds the jobs
_KEYS: Final = frozenset(n for n, o in OPTIONS.items() if o.in_files and n not in _REFERENCES)
_STEP: Final = re.compile(r"\.?([^.\[\]]+)|\[(\d+)\]")


def make_job(
    name: str, node: Node, field: str, defaults: Mapping[str, Node], env: Mapping[str, Node]
) -> JobSpec:
    """Returns the job that an entry describes, without its dependencies.

    `defaults` are options of the workflow, which the job overrides; `env` are the variables of the
    workflow, which a command gets unless it has its own.
    """
    given = {n: part for n, part in node.entries().items() if part.value is not None}
    faults = Faults()
    fields: dict[str, Any] = {}
    for option, part in given.items():
        if option in _KEYS:
            with faults:
                fields |= _canonical(option, part, node, field)
    if "run" in given:
        fields |= _command(given, node, field, env)
    elif "task" not in given:
        raise node.refuse(field, "a job with run, task or workflow", "none of them")
    else:
        _refuse_parts(given, node, field, OF_COMMANDS, "run")
    _refuse_parts(given, node, field, ("parameters",), "workflow")
    fields = {name: plain(part) for name, part in defaults.items()} | fields
    job = JobSpec(name=name, **canonical_options({"task": "", **fields}))
    for _ in range(len(given)):
        try:
            check_job(job, node, field)
            break
        except Misdescribed as error:
            faults.errors.append(error)
            option = error.field.removeprefix(f"{field}.").partition(".")[0].partition("[")[0]
            if option not in OPTIONS or option == "task" or option not in given:
                break
            job = msgspec.structs.replace(job, **{option: OPTIONS[option].default})
    faults.tell()
    return job


def _canonical(option: str, part: Node, node: Node, field: str) -> dict[str, Any]:
    try:
        return canonical_options({option: _value(part, OPTIONS[option].form)})
    except InvalidInput as error:
        raise _in_file(error, node, field) from None


def _value(node: Node, form: Form) -> Any:
    """Returns a value as a program would write it; labels are the text in the file."""
    if form is LABELS:
        return {name: part.text for name, part in node.entries().items()}
    return plain(node)


def check_option(option: str, node: Node) -> None:
    """Refuses an invalid default option, given by `node`."""
    try:
        canonical_options({option: plain(node)})
    except InvalidInput as error:
        raise node.refuse(option, error.expected) from None


def check_job(request: JobSpec, node: Node, field: str) -> None:
    """Refuses what the server would refuse, and names the line."""
    try:
        VALIDATOR.validate(request, "job")
    except InvalidInput as error:
        raise _in_file(error, node, field) from None


def _in_file(error: InvalidInput, node: Node, field: str) -> Misdescribed:
    """Returns the same error with the line, and the field's name in the file."""
    inner = error.field.removeprefix("job").lstrip(".")
    where = f"{field}.{_shown(inner)}" if inner else field
    return Misdescribed(place_in(node, inner), where, error.expected, error.got, error.hint)


def check_job_name(name: str, node: Node, field: str) -> None:
    """Refuses an invalid name."""
    try:
        check_name("name", name)
    except InvalidInput as error:
        raise node.refuse(f"{field}.name", error.expected, name) from None


def place_in(node: Node, field: str) -> Place:
    """Returns the position of a field of a job, or of its container."""
    found, place = node, node.place
    for name, number in _STEP.findall(_shown(field)):
        if name:
            place = found.place_of(name)
            child = found.get(name)
        else:
            items = found.value if isinstance(found.value, list) else []
            child = items[int(number)] if int(number) < len(items) else None
        if child is None:
            break
        found = child
        place = child.place if number else place
    return place


def _shown(field: str) -> str:
    """Returns the field's name in files: `args.argv[1]` is `run[1]`."""
    name, rest = field.partition(" ")[0], ""  # for a clause, its text follows the field
    if field.startswith("args."):
        first = re.match(r"args\.(\w+)(.*)", field)
        if first and first[1] in ("argv", *OF_COMMANDS):
            name, rest = first[1], first[2]
    return ("run" if name == "argv" else name) + rest


def _command(
    given: dict[str, Node], node: Node, field: str, env: Mapping[str, Node]
) -> dict[str, Any]:
    _refuse_parts(given, node, field, ("task", "args"), None)
    line = given["run"]
    words = [_text(word) for word in line.items()]
    args: dict[str, Any] = {"argv": words if isinstance(line.value, list) else [*SHELL, *words]}
    variables = {**env, **(given["env"].entries() if "env" in given else {})}
    if variables:
        args["env"] = {name: _text(part) for name, part in variables.items()}
    if "inputs" in given:
        args["inputs"] = [_input(item, field) for item in given["inputs"].items()]
    if "artifacts" in given:
        args["artifacts"] = plain(given["artifacts"])
    if "outputs" in given:
        args["outputs"] = plain(given["outputs"])
    return {"task": "shell", "args": args}


def _text(node: Node) -> Any:
    """Returns a value as text; one with outputs of jobs becomes text when the job is assigned."""
    if not isinstance(node.value, Referring):
        return node.text
    reference = node.value.reference
    return reference if TEXT in reference else {TEXT: [reference]}


def _input(item: Node, field: str) -> dict[str, Any]:
    """Returns an input; one that names a job is completed later (`references.py`)."""
    fields: dict[str, Any] = plain(item)
    if not isinstance(fields.get("job"), str):
        return fields
    if not isinstance(fields["artifact"], str):
        raise item.refuse(f"{field}.inputs", "an artifact by name with job", fields["artifact"])
    rest = {name: value for name, value in fields.items() if name != "job"}
    return rest | {"artifact": {"$lookup": fields["artifact"]}}


def _refuse_parts(
    given: dict[str, Node], node: Node, field: str, names: tuple[str, ...], needs: str | None
) -> None:
    for name in names:
        if name in given:
            expected = f"without {name} beside run" if needs is None else f"with {name} for {needs}"
            raise Misdescribed(node.place_of(name), field, expected, name)


_KINDS: Final = (FfmpegTask(), GstreamerTask(), MediaTask(), PythonTask(), ShellTask())
VALIDATOR: Final = Validator(Config(), {kind.name: kind for kind in _KINDS})


PLAIN: Final = ("name", "namespace", "priority", "key", "key_for", "fail_fast")
REACTIONS: Final = ("on_success", "on_failure", "on_end")


def check_workflow(new: NewWorkflow, node: Node, faults: Faults) -> None:
    """Reports what the server would refuse, with its line."""
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
    """Returns an error about the workflow with its line."""
    field = error.field.removeprefix("workflow.")
    return Misdescribed(place_in(node, field), field, error.expected, error.got, error.hint)


def _check_jobs(reaction: Reaction, field: str) -> None:
    jobs = reaction.submit if isinstance(reaction.submit, list) else []
    for number, job in enumerate(jobs):
        VALIDATOR.validate(job, f"{field}[{number}]")
