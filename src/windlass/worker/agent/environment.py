"""What jobs see of the agent's environment, never its credentials.

Jobs of a worker see a short list of variables and those that its operator names. Functions of an
embedded client see all that the program sees. Names that begin with `WINDLASS_` are Windlass's own
(tokens, codes, secrets, addresses of stores and servers) and never pass.
"""

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import InvalidInput
from windlass.worker.agent.env_file import is_variable_name, parse_env_file

OWN_START: Final = "WINDLASS_"
# Names that programs need to find their files and speak their language.
KEPT: Final = frozenset({
    "HOME", "LANG", "LANGUAGE", "LD_LIBRARY_PATH", "LOGNAME", "PATH", "PYTHONPATH", "SHELL",
    "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR", "TZ", "USER", "VIRTUAL_ENV",
})  # fmt: skip
KEPT_STARTS: Final = ("LC_", "CUDA_", "NVIDIA_", "GST_")


def job_environment(
    environ: Mapping[str, str], marker: Mapping[str, str], variables: Mapping[str, str]
) -> dict[str, str]:
    """Returns the environment every job starts from: the short list, and these variables."""
    kept = basic_environment(environ)
    kept.update(without_own(variables))
    kept.setdefault("PATH", os.defpath)
    return {**kept, **marker}


def basic_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables of the short list."""
    return {
        name: value
        for name, value in environ.items()
        if name in KEPT or name.startswith(KEPT_STARTS)
    }


def without_own(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns all variables but those of Windlass."""
    return {name: value for name, value in environ.items() if not name.startswith(OWN_START)}


def named_variables(
    environ: Mapping[str, str],
    env: Iterable[str] = (),
    file: Path | None = None,
    patterns: Iterable[str] = (),
) -> dict[str, str]:
    """Returns the variables that an operator gives to all jobs; raises `InvalidInput`.

    `patterns` are of names in `environ`. `file` counts more, and `env` (`NAME` or `NAME=VALUE`)
    most.
    """
    shapes = tuple(patterns)
    found = {
        name: value
        for name, value in without_own(environ).items()
        if any(fnmatchcase(name, shape) for shape in shapes)
    }
    if file is not None:
        for name, value in parse_env_file(_read(file), f"--env-file {file}"):
            found[name] = _taken(environ, name, value, "--env-file")
    for word in env:
        name, given, value = word.partition("=")
        if not is_variable_name(name):
            # What stands there may be a secret without its name.
            raise InvalidInput("--env", "NAME or NAME=VALUE", "something else")
        found[name] = _taken(environ, name, value if given else None, "--env")
    return found


def _taken(environ: Mapping[str, str], name: str, value: str | None, field: str) -> str:
    if name.startswith(OWN_START):
        raise InvalidInput(field, f"a name that does not begin with {OWN_START}", name)
    if value is None:
        if name not in environ:
            raise InvalidInput(field, f"{name}=VALUE, or {name} in the worker's environment", name)
        return environ[name]
    if "\0" in value:
        raise InvalidInput(field, f"a value of {name} without NUL characters", "one with some")
    return value


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise InvalidInput(
            "--env-file", "a file that can be read", f"{file}: {error.strerror}"
        ) from None
    except UnicodeDecodeError:
        raise InvalidInput("--env-file", "UTF-8 text", str(file)) from None
