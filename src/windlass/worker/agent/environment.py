"""The part of the agent's environment that jobs see, never its credentials, and files of variables.

Jobs of a worker see a short list of variables and those named by its operator. Functions of an
embedded client see everything the program sees. Names that begin with `WINDLASS_` are Windlass's
own (tokens, codes, secrets, addresses of stores and servers) and are never passed on.

A file of variables has one `NAME=VALUE` per line. Blank lines and lines that begin with `#` are
ignored, and `export` before a name is allowed. A value in single quotes is literal; in double
quotes `\\n`, `\\t`, `\\"`, `\\$` and `\\\\` are escapes; any other value ends with its line. A line
with only a name takes the variable from the environment of the process that reads the file. Nothing
is substituted.
"""

import os
import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final, NamedTuple

from windlass.domain.values.errors import InvalidInput

SIZE_LIMIT: Final = 1_048_576
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\[nt"$\\])*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_STANDS_FOR: Final = {"n": "\n", "t": "\t"}
_HIDDEN: Final = "something else"  # the wrong text may be a secret, so messages do not show it


class Variable(NamedTuple):
    """A variable; without a value, it is taken from the environment."""

    name: str
    value: str | None


def is_variable_name(text: str) -> bool:
    """Returns whether every shell accepts this as the name of a variable."""
    return _NAME.fullmatch(text) is not None


def parse_env_file(text: str, where: str = "env file") -> list[Variable]:
    """Returns the variables in the order of their lines; raises `InvalidInput`."""
    if len(text) > SIZE_LIMIT:
        raise InvalidInput(where, f"at most {SIZE_LIMIT} characters", len(text))
    found = []
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        line = line.strip(" \t\r")
        if line and not line.startswith("#"):
            found.append(_variable(line, f"{where}, line {number}"))
    return found


def _variable(line: str, where: str) -> Variable:
    if "\0" in line:
        raise InvalidInput(where, "a line without NUL characters", _HIDDEN)
    name, given, value = line.partition("=")
    name = name.rstrip(" \t")
    if name.startswith(("export ", "export\t")):
        name = name[len("export") :].strip(" \t")
    if not is_variable_name(name):
        raise InvalidInput(where, "NAME=VALUE, with letters, digits and _ in the name", _HIDDEN)
    return Variable(name, _value(value.strip(" \t"), where) if given else None)


def _value(text: str, where: str) -> str:
    if text.startswith("'"):
        if len(text) < 2 or text.find("'", 1) != len(text) - 1:
            raise InvalidInput(where, "a value that ends with the closing quote", _HIDDEN)
        return text[1:-1]
    if text.startswith('"'):
        found = _QUOTED.fullmatch(text)
        if found is None:
            expected = "a value that ends with the closing quote, and known escapes"
            raise InvalidInput(where, expected, _HIDDEN)
        return _ESCAPED.sub(lambda one: _STANDS_FOR.get(one[1], one[1]), found[1])
    return text


OWN_START: Final = "WINDLASS_"
# Names that programs need to find their files and to choose their language.
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

    `patterns` match names in `environ`. `file` overrides them, and `env` (`NAME` or `NAME=VALUE`)
    overrides both.
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
            # The entry may be a secret without its name.
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
        raise InvalidInput(
            field, f"a value of {name} without NUL characters", "a file with variables"
        )
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
