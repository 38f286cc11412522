"""`windlass call`: runs a function here and now."""

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
from cyclopts import Parameter

from windlass.cli.output.exit_codes import FAILED, USAGE
from windlass.cli.output.text import RED, warn
from windlass.domain.tasks.python import PATH_LIMIT, read_call
from windlass.domain.values.errors import InvalidInput

if TYPE_CHECKING:
    from windlass.executors.python.messages import Failed

Modules = Annotated[list[str] | None, Parameter(name="--import", consume_multiple=False)]


def call(function: str, args: str | None = None, /, *, modules: Modules = None) -> None:
    """Run a task's function in this process, without a queue, and print its result as JSON.

    Arguments arrive as in a job, and what the function prints goes to the standard error.
    windlass.current() is a job with the id 0: its steps are not kept, windlass.sleep does not
    wait, and it cannot submit jobs, wait for signals or ask.

    Parameters
    ----------
    function
        package.module:function, or the name of a task in an imported module.
    args
        The arguments as JSON: an object by name, or a list by position.
    modules
        A module to import first, whose named tasks can be called. Repeatable.
    """
    if os.getcwd() not in sys.path and "" not in sys.path:
        sys.path.insert(0, os.getcwd())
    given = read_call(_decode(args))
    path = _path_of(function, modules or ())
    # Here, since it loads what the processes of workers load.
    from windlass.executors.python.local import LocalServer
    from windlass.executors.python.messages import Call, Done, Failed

    server = LocalServer(lambda value: warn(f"progress: {msgspec.json.encode(value).decode()}"))
    with contextlib.redirect_stdout(sys.stderr):
        report = server.call(Call(1, 0, 1, None, path, given.args, given.kwargs))
    if isinstance(report, Failed):
        warn(f"windlass: {_message(path, report)}", RED)
        raise SystemExit(USAGE if report.misfit else report.exit_code or FAILED)
    result = report.result if isinstance(report, Done) else None
    sys.stdout.write(f"{'null' if result is None else result.decode()}\n")


def _message(path: str, report: "Failed") -> str:
    if report.missing is None:
        return report.message
    where = "run it where its module is found (its folder, its environment, or PYTHONPATH)"
    return f"{path} cannot be called here: {report.missing}; {where}"


def _decode(text: str | None) -> Any:
    if text is None:
        return None
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise InvalidInput("ARGS", f"JSON ({error})", text) from None


def _path_of(name: str, modules: list[str] | tuple[str, ...]) -> str:
    """Returns the import path of a function, by itself or by its task's name."""
    from windlass.executors.python.known import import_modules
    from windlass.tasks.task import named_tasks

    import_modules(modules)
    known = named_tasks()
    if name in known:
        return known[name].path
    if ":" not in name or len(name) > PATH_LIMIT:
        expected = "package.module:function, or a task of a module given with --import"
        raise InvalidInput("FUNCTION", expected, name)
    return name
