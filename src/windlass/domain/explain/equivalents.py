"""Ways to submit a job again: as a command line, as Python, and as a call without a queue.

The dashboard shows them beside a form, and `windlass show --reproduce` for an existing job. Nothing
is run here: words are quoted for a shell, values are written as Python literals.
"""

import shlex
from collections.abc import Callable, Iterator, Mapping
from operator import attrgetter
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.job.forms import (
    AMOUNTS,
    BACKOFF,
    CONCURRENCY,
    DELAY,
    DURATION,
    FAILURES,
    GRACE,
    JSON,
    KEY_WINDOW,
    LABELS,
    LIMITS,
    RATE,
    SWITCH,
    TIMEOUT,
    Form,
)
from windlass.domain.job.job import OPTIONS, SET_BY_SERVER, JobOption, JobSpec
from windlass.domain.values.quantities import exact_size, format_duration

_SHELL: Final = "shell"
_PYTHON: Final = "python"
_OF_COMMANDS: Final = frozenset({"argv", "env", "artifacts", "inputs"})
_CLIENT: Final = ("import windlass", "", "client = windlass.Client()")
_APART: Final = frozenset({"task", "args"}) | SET_BY_SERVER
_LISTED: Final = tuple(option for name, option in OPTIONS.items() if name not in _APART)
_listed_of: Final = attrgetter(*(option.name for option in _LISTED))


class Equivalents(NamedTuple):
    """Ways to submit the same job; `call` runs its function locally, without a queue."""

    command: str
    python: str
    call: str | None


def equivalents(spec: JobSpec, path: str | None = None) -> Equivalents:
    """Returns the texts for a canonical job; `path` is the function of its named task, if known."""
    return Equivalents(command_line(spec), python_code(spec), local_call(spec, path))


def start_texts(template: str, parameters: Mapping[str, Any], version: int = 0) -> Equivalents:
    """Returns the texts that start a template with these parameters."""
    name = f"{template}@{version}" if version else template
    words = ["windlass", "workflows", "start", name]
    for parameter, value in parameters.items():
        words += ["--param", f"{parameter}={_parameter(value)}"]
    start = f"workflow = client.start_template({name!r}, {dict(parameters)!r})"
    python = "\n".join((*_CLIENT, start, "print(workflow.id)", ""))
    return Equivalents(" ".join(map(quote, words)), python, None)


def _parameter(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_parameter, value))
    return value if isinstance(value, str) else _json(value)


def command_line(spec: JobSpec) -> str:
    """Returns the command that submits this job."""
    words = ["windlass", "submit"]
    for option, value in _given(spec):
        words += _flag(str(option.flag), option.form, value)
    command = _command(spec) if spec.task == _SHELL else None
    if command is not None:
        words += command
    else:
        words += _words("--task", spec.task)
        if spec.args is not None:
            words += _words("--args", _json(spec.args))
    return " ".join(map(quote, words))


def python_code(spec: JobSpec) -> str:
    """Returns a program that submits this job and prints its result."""
    given = {option.name: msgspec.to_builtins(value) for option, value in _given(spec)}
    args = msgspec.to_builtins(spec.args)
    if _is_keywords(args):
        options = f".options({_keywords(given)})" if given else ""
        listed = [f"windlass.named({spec.task!r}){options}", *_pairs(args)]
        submit = f"client.submit({', '.join(listed)})"
    else:
        fields = _keywords({"task": spec.task, "args": args} | given)
        submit = f"client.submit(windlass.JobSpec({fields}))"
    return "\n".join((*_CLIENT, f"job = {submit}", "print(job.result())", ""))


def local_call(spec: JobSpec, path: str | None = None) -> str | None:
    """Returns the command that calls a job's function without a queue; None for other tasks."""
    arguments = spec.args
    if spec.task == _PYTHON and isinstance(arguments, dict):
        path = arguments.get("function")
        listed, named = arguments.get("args") or [], arguments.get("kwargs") or {}
        if listed and named:
            return None  # A call takes arguments by position or by name, not both.
        arguments = listed or named or None
    if not isinstance(path, str):
        return None
    words = ["windlass", "call", path]
    return " ".join(map(quote, words if arguments is None else [*words, _json(arguments)]))


def quote(word: str) -> str:
    """Quotes a word for a shell; control characters are shown escaped."""
    if word.isprintable():
        return shlex.quote(word)
    return "$'" + "".join(map(_escaped, word)) + "'"


def _escaped(character: str) -> str:
    if character in "\\'":
        return f"\\{character}"
    if character.isprintable():
        return character
    return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character, f"\\U{ord(character):08x}")


def _given(spec: JobSpec) -> Iterator[tuple[JobOption, Any]]:
    """Returns the options that differ from their defaults."""
    for option, value in zip(_LISTED, _listed_of(spec), strict=True):
        if value != option.default:
            yield option, value


def option_texts(spec: JobSpec) -> dict[str, str]:
    """Returns the options that a job sets, each as it is written after its flag."""
    return {option.name: ", ".join(_texts(option.form, given)) for option, given in _given(spec)}


def _flag(flag: str, form: Form, value: Any) -> list[str]:
    if form is SWITCH:
        return [flag]
    return [word for text in _texts(form, value) for word in _words(flag, text)]


def _texts(form: Form, value: Any) -> list[str]:
    """Returns a value as it is written after its flag, which may be repeated."""
    return _TEXTS.get(form.name, _plain)(value)


def _words(flag: str, text: str) -> list[str]:
    """Returns a flag with its value: as one word if the value could be mistaken for a flag."""
    return [f"{flag}={text}"] if text.startswith("-") or not text else [flag, text]


def _command(spec: JobSpec) -> list[str] | None:
    """Returns the words of a command with its flags; None if flags cannot express it."""
    args = spec.args
    if not isinstance(args, dict) or not isinstance(args.get("argv"), list):
        return None
    inputs = [_input(one) for one in args.get("inputs") or ()]
    texts = all(isinstance(word, str) for word in args["argv"])
    if not set(args) <= _OF_COMMANDS or None in inputs or not texts:
        return None
    words: list[str] = []
    for name, value in (args.get("env") or {}).items():
        words += _words("--env", f"{name}={value}")
    for pattern in args.get("artifacts") or ():
        words += _words("--artifact", pattern)
    for one in inputs:
        words += _words("--input", str(one))
    return [*words, "--", *args["argv"]]


def _input(item: Any) -> str | None:
    """Returns JOB/NAME or JOB/NAME=PATH; None for an input of another form."""
    job = item.get("job") if isinstance(item, dict) else None
    name = item.get("artifact") if isinstance(item, dict) else None
    if not isinstance(job, int) or not isinstance(name, str) or "=" in name or "file" in item:
        return None
    return f"{job}/{name}={item['path']}" if item.get("path") else f"{job}/{name}"


def _json(value: Any) -> str:
    return msgspec.json.encode(value).decode()


def _is_keywords(args: Any) -> bool:
    return isinstance(args, dict) and all(name.isidentifier() for name in args)


def _pairs(values: dict[str, Any]) -> list[str]:
    return [f"{name}={value!r}" for name, value in values.items()]


def _keywords(values: dict[str, Any]) -> str:
    return ", ".join(_pairs(values))


def _plain(value: Any) -> list[str]:
    values = value if isinstance(value, list | tuple) else (value,)
    return [str(one) for one in values]


def _named_amounts(value: Any, forms: Mapping[str, Callable[[Any], str]] = {}) -> list[str]:
    """Returns NAME=VALUE for each entry of a mapping or a struct; `forms` shows some of them."""
    amounts = msgspec.to_builtins(value)
    return [f"{name}={forms.get(name, str)(amount)}" for name, amount in amounts.items()]


def _length(value: float | str) -> str:
    """Returns a duration as people write it; `never`, `none` and `forever` as they are."""
    return value if isinstance(value, str) else format_duration(round(value * 1000))


_OF_LIMITS: Final = {"memory": exact_size, "disk": exact_size, "cpu_time": _length}
_OF_BACKOFF: Final = {"initial": _length, "max": _length}
_TEXTS: Final[dict[str, Callable[[Any], list[str]]]] = {
    **{
        form.name: lambda value: [_length(value)]
        for form in (DURATION, DELAY, GRACE, KEY_WINDOW, TIMEOUT)
    },
    SWITCH.name: lambda _: ["yes"],
    AMOUNTS.name: _named_amounts,
    LABELS.name: _named_amounts,
    LIMITS.name: lambda value: _named_amounts(value, _OF_LIMITS),
    BACKOFF.name: lambda value: [",".join(_named_amounts(value, _OF_BACKOFF))],
    FAILURES.name: lambda value: [",".join(value)],
    RATE.name: lambda value: [f"{value.key}={value.max}/{_length(value.per)}"],
    CONCURRENCY.name: lambda value: [f"{value.key}={value.max}"],
    JSON.name: lambda value: [_json(value)],
}
