"""The reference pages, made from the options and commands themselves.

`make docs-reference` writes them; a test fails while they are not current.
"""

import inspect
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from cyclopts import App, Group

from windlass.cli.app import app
from windlass.cli.configuration import CONFIG_VARIABLE, OPTIONS
from windlass.cli.connection import CONNECTION
from windlass.cli.core import CORE
from windlass.cli.fuzz.app import LOCATION
from windlass.cli.output import EXIT_CODES
from windlass.domain.job.job import OPTIONS as JOB_OPTIONS
from windlass.domain.job.job import JobOption
from windlass.domain.values.options import Option
from windlass.workflows.schema import published

GENERATED: Final = "<!-- Written by `make docs-reference`. Changes by hand are lost. -->\n\n"

CONFIGURATION_START: Final = f"""\
# Configuration

The core has the options below. Each can be set in four places; the first that sets it wins:

1. a flag: `--heartbeat-interval 30s`
2. an environment variable: `WINDLASS_HEARTBEAT_INTERVAL=30s` (an empty one counts as not set)
3. the TOML file of `--config FILE` or `{CONFIG_VARIABLE}`: `heartbeat_interval = "30s"`
4. the default

`windlass server`, `windlass up` and `windlass worker --store …` take them. A worker that talks
to a server takes none: the server tells it. `windlass config` shows the values in force and where
each was set, and takes the same flags. A name that is not known, a value of the wrong type and
values that cannot work together are refused at the start.

- **Durations** are `90` (seconds), `500ms`, `90s`, `15m`, `6h`, `30d` or `2m30s`.
- **Sizes** are `1024` (bytes), `512MiB`, `4GiB` or `1GB`.
- A name with a dot is a key of a table in the file; in variables and flags the dot becomes `_` or
  `-`: `WINDLASS_RETRY_MAX_RETRIES`, `--retry-max-retries`.
- **Values for single queues** are a table in the file; in a variable `batch=7d,live=1d`; as flags
  `--queue-retention batch=7d --queue-retention live=1d`. They are taken from one place as a
  whole.

```toml
heartbeat_interval = "30s"
job_retention = "30d"

[retry]
max_retries = 5

[queue_retention]
batch = "7d"
```

"""

COMMANDS_START: Final = """\
# Commands

`windlass COMMAND --help` says the same. `--json` prints JSON for programs.
`windlass --install-completion` sets up completion for the shell it is run in (bash, zsh, fish).

## Exit codes

`windlass run` exits with the exit code of its job, or 1 if the job did not end by itself.

| code | meaning |
|---|---|
"""


JOB_START: Final = """\
# Job options

Every option of a job, with the name it has in JSON, in Python and in workflow files, and its flag
on the command line. In Python: `windlass.JobSpec(task="shell", timeout="15m")`,
`@windlass.task(timeout="15m")`, or `options={"timeout": "15m"}` of a workflow's `submit`.

- **Durations** are `90` (seconds), `500ms`, `90s`, `15m`, `6h`, `2d` or `2m30s`.
- **Times** are RFC 3339, such as `2030-01-02T03:04:05Z`; flags also take a duration from now.
- **Lists** and **mappings** are flags that can be repeated.

"""


def configuration_page() -> str:
    """docs/reference/configuration.md."""
    lines = ["| option | value | default | meaning |", "|---|---|---|---|"]
    lines += [
        f"| `{option.shown}` | {_kind(option)} | {_default(option)} | {option.description} |"
        for option in OPTIONS.values()
    ]
    return GENERATED + CONFIGURATION_START + "\n".join(lines) + "\n"


def _kind(option: Option) -> str:
    one = {"ms": "duration", "bytes": "size"}.get(option.unit, option.unit)
    return f"{one} by queue" if option.is_table else one


def _default(option: Option) -> str:
    shown = option.show(option.default)
    return f"`{shown}`" if shown else "none"


def commands_page() -> str:
    """docs/reference/cli.md."""
    codes = [f"| {code} | {meaning} |" for code, meaning in EXIT_CODES.items()]
    return GENERATED + COMMANDS_START + "\n".join(codes) + "\n" + "".join(_sections())


def _sections(path: str = "windlass", commands: App = app) -> Iterator[str]:
    """Each command, and those inside of it after it."""
    for name in commands:
        if not name.startswith("-"):
            inner = commands[name]
            yield from _section(f"{path} {name}", inner)
            yield from _sections(f"{path} {name}", inner)


def _section(path: str, command: App) -> Iterator[str]:
    run = command.default_command
    if run is None:
        return
    said, _, _ = (inspect.getdoc(run) or "").partition("\n\nParameters\n")
    collection = command.assemble_argument_collection(
        default_parameter=app.default_parameter, parse_docstring=True
    )
    arguments = [argument for argument in collection if argument.show]
    own = [a for a in arguments if not _is_in(a, CORE)]
    yield f"\n## {path}\n\n{said}\n\n"
    connects = any(_is_in(a, CONNECTION) for a in own)
    rows = [_row(a) for a in own if not (_is_in(a, CONNECTION) or _is_in(a, LOCATION))]
    if rows:
        yield "| argument | meaning |\n|---|---|\n" + "\n".join(rows) + "\n"
    if connects:
        yield "\nAnd `--server URL`, `--data DIR`, `--tls-ca FILE`.\n"
    if any(_is_in(a, LOCATION) for a in own):
        yield "\nAnd `--bucket URL`, `--work DIR`: where a pipeline keeps its state and works.\n"
    if len(own) < len(arguments):
        yield "\nAnd every option of the [core](configuration.md).\n"


def _is_in(argument: Any, group: Group) -> bool:
    return group in argument.parameter.group


def _row(argument: Any) -> str:
    names = ", ".join(f"`{name}`" for name in argument.names)
    default = argument.field_info.default
    shown = default not in (None, False, inspect.Parameter.empty)
    notes = f" Default: `{default}`." if shown else ""
    notes += " Required." if argument.required else ""
    return f"| {names} | {_sentence(argument.parameter.help)}{notes} |"


def _sentence(text: str | None) -> str:
    return " ".join((text or "").split()).replace("|", "\\|")


def job_page() -> str:
    """docs/reference/job.md."""
    lines = [
        "| option | value | default | flag | in files | meaning |",
        "|---|---|---|---|---|---|",
    ]
    lines += [_job_row(option) for option in JOB_OPTIONS.values()]
    return GENERATED + JOB_START + "\n".join(lines) + "\n"


def _job_row(option: JobOption) -> str:
    default = "required" if option.required else f"`{option.default}`" if option.default else ""
    flag = f"`{option.flag}`" if option.flag else ""
    files = "yes" if option.in_files else ""
    return (
        f"| `{option.name}` | {option.form.name} | {default} | {flag} | {files} "
        f"| {_sentence(option.help)} |"
    )


def workflow_schema() -> str:
    """docs/reference/workflow.schema.json."""
    return json.dumps(published(), indent=2) + "\n"


PAGES: Final = {
    "configuration.md": configuration_page,
    "cli.md": commands_page,
    "job.md": job_page,
    "workflow.schema.json": workflow_schema,
}


def main() -> None:
    """Write the pages into the directory that the first argument names."""
    directory = Path(sys.argv[1])
    directory.mkdir(parents=True, exist_ok=True)
    for name, make in PAGES.items():
        (directory / name).write_text(make())


if __name__ == "__main__":
    main()
