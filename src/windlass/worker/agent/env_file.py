"""Files of environment variables: a line `NAME=VALUE` for each.

Blank lines and lines that begin with `#` do not count, and `export` before a name is allowed. A
value in single quotes is taken as it is; in double quotes `\\n`, `\\t`, `\\"`, `\\$` and `\\\\` are
written for what they stand for; any other value ends with its line. A line with a name alone
takes the variable from where the file is read. Nothing is substituted.
"""

import re
from typing import Final, NamedTuple

from windlass.domain.values.errors import InvalidInput

SIZE_LIMIT: Final = 1_048_576
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED: Final = re.compile(r'"((?:[^"\\]|\\[nt"$\\])*)"')
_ESCAPED: Final = re.compile(r"\\(.)")
_STANDS_FOR: Final = {"n": "\n", "t": "\t"}
_HIDDEN: Final = "something else"  # what is wrong may be a secret, so messages do not show it


class Variable(NamedTuple):
    """A variable; without a value, it is taken from the environment."""

    name: str
    value: str | None


def is_variable_name(text: str) -> bool:
    """Returns whether every shell takes this for the name of a variable."""
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
