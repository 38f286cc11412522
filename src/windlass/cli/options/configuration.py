"""Reads the core options from a file, the environment and `--set`, and remembers each one's source.

`--set` overrides a variable, a variable overrides the file, the file overrides the default. An
unknown option or an impossible value is an error that names its source, before anything starts.
"""

import os
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

from cyclopts import Parameter

from windlass.cli.options.flags import Many
from windlass.domain.access.sign_in import SignIn, read_sign_in
from windlass.domain.config import Config, assemble, describe_options, validate
from windlass.domain.values.errors import InvalidInput, UnknownName
from windlass.domain.values.names import did_you_mean
from windlass.domain.values.options import Option, read_entry, read_text, read_typed

OPTIONS: Final = {option.shown: option for option in describe_options()}
DEFAULT: Final = "default"
CONFIG_VARIABLE: Final = "WINDLASS_CONFIG"
SET: Final = "--set"

# Variables with other meanings, which are not misspelt options.
OTHER_VARIABLES: Final = frozenset({
    "WINDLASS_ATTEMPT", CONFIG_VARIABLE, "WINDLASS_DATA", "WINDLASS_IMPORT", "WINDLASS_JOB",
    "WINDLASS_CLIENT_CERT", "WINDLASS_CLIENT_KEY", "WINDLASS_KEEPER", "WINDLASS_SERVER",
    "WINDLASS_HIDE", "WINDLASS_TLS_CA", "WINDLASS_TOKEN", "WINDLASS_WORKFLOW",
})  # fmt: skip
VERY_CLOSE: Final = 0.85
SIGN_IN_TABLES: Final = ("oidc", "machines")
SECRET_START: Final = "WINDLASS_SECRET_"

_TABLE_LINE: Final = re.compile(r"\[\s*([^\[\]]+?)\s*\]")
_KEY_LINE: Final = re.compile(r"""((?:[\w-]+|"[^"]*"|'[^']*')(?:\s*\.\s*[\w"'-]+)*)\s*=""")


class Setting(NamedTuple):
    """An option's value and its source: --set, a variable, FILE:LINE or default."""

    option: Option
    value: object
    source: str


class Settings(NamedTuple):
    """The value of every option."""

    by_name: dict[str, Setting]
    file: Path | None
    sign_in: SignIn = SignIn()

    @property
    def config(self) -> Config:
        """Returns the core's configuration."""
        return _assemble(self.by_name)


ConfigFile = Annotated[
    Path | None,
    Parameter(name="--config", help=f"A TOML file with core options. Default: {CONFIG_VARIABLE}."),
]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CoreOptions:
    """The core options, from a file and one by one.

    Parameters
    ----------
    chosen
        A core option, NAME=VALUE, such as heartbeat_interval=10s; it overrides the file.
        Repeatable. `windlass config` lists all.
    """

    config: ConfigFile = None
    chosen: Annotated[Many, Parameter(name=SET, metavar="NAME=VALUE")] = None

    @property
    def by_name(self) -> dict[str, str]:
        """Returns the values given with `--set`; raises `InvalidInput`."""
        return read_set(self.chosen or ())

    def settings(self) -> Settings:
        """Returns all core options; raises `InvalidInput`."""
        return load_settings(self.by_name, os.environ, self.config)


NONE_SET: Final = CoreOptions()


def read_set(texts: Sequence[str]) -> dict[str, str]:
    """Returns values by option; those of one table add up."""
    found: dict[str, str] = {}
    for text in texts:
        name, separator, value = text.partition("=")
        name = name.strip()
        if not separator:
            raise InvalidInput(SET, "NAME=VALUE", text)
        option = _known(name, f"{SET}: ")
        found[name] = f"{found[name]},{value}" if option.is_table and name in found else value
    return found


def load_settings(
    chosen: Mapping[str, str], environment: Mapping[str, str], file: Path | None = None
) -> Settings:
    """Returns all options; raises `InvalidInput` for the first invalid one."""
    named = environment.get(CONFIG_VARIABLE)
    path = file or (Path(named) if named else None)
    settings = {name: Setting(o, o.default, DEFAULT) for name, o in OPTIONS.items()}
    sign_in = SignIn()
    if path is not None:
        found, sign_in = _from_file(path, "--config" if file else CONFIG_VARIABLE)
        settings |= found
    settings |= _from_environment(environment)
    settings |= {name: _from_text(OPTIONS[name], text, SET) for name, text in chosen.items()}
    _check(settings)
    return Settings(settings, path, sign_in)


def _from_text(option: Option, text: str, source: str) -> Setting:
    return Setting(option, read_text(option, text, _named(option.shown, source)), source)


def _from_environment(environment: Mapping[str, str]) -> dict[str, Setting]:
    """Reads options from variables; an empty variable counts as not set."""
    known = {option.variable: name for name, option in OPTIONS.items()}
    found: dict[str, Setting] = {}
    for variable, text in environment.items():
        name = known.get(variable)
        if name is not None and text:
            found[name] = _from_text(OPTIONS[name], text, variable)
        elif name is None and variable.startswith("WINDLASS_"):
            _refuse_misspelt(variable, known)
    return found


def _refuse_misspelt(variable: str, known: Mapping[str, str]) -> None:
    """Raises if a variable looks like a misspelt option.

    Other software may set variables with our prefix (Kubernetes does), so an unknown variable is
    an error only if it is very close to one of ours.
    """
    if variable in OTHER_VARIABLES or variable.startswith(SECRET_START):
        return
    hint = did_you_mean(variable, known, cutoff=VERY_CLOSE)
    if hint:
        raise UnknownName("variable", variable, "an option", hint)


def _from_file(path: Path, named_by: str) -> tuple[dict[str, Setting], SignIn]:
    try:
        text = path.read_text(encoding="utf-8")
        content = tomllib.loads(text)
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise InvalidInput(named_by, f"a readable file ({why})", str(path)) from None
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InvalidInput(str(path), "TOML", str(error)) from None
    lines = _lines(text)
    sign_in = _take_sign_in(path, content)
    return {
        key: _from_entry(key, value, lambda name: _place(path, lines, name))
        for key, value in _entries(content)
    }, sign_in


def _take_sign_in(path: Path, content: Mapping[str, Any]) -> SignIn:
    """Takes the tables of sign-in out of a file; they have no flags and no variables."""
    access = content.get("access")
    if not isinstance(access, dict):
        return SignIn()
    tables = {name: access.pop(name) for name in SIGN_IN_TABLES if name in access}
    try:
        return read_sign_in(tables)
    except InvalidInput as error:
        raise InvalidInput(_named(error.field, str(path)), error.expected, error.got) from None


def _from_entry(key: str, value: Any, place: Callable[[str], str]) -> Setting:
    option = _known(key, f"{place(key)}: ")
    if not option.is_table or not isinstance(value, Mapping):
        return Setting(option, read_typed(option, value, _named(key, place(key))), place(key))
    read = {
        name: read_entry(option, one, _named(f"{key}.{name}", place(f"{key}.{name}")))
        for name, one in value.items()
    }
    return Setting(option, read, place(key))


def _known(name: str, where: str) -> Option:
    """Returns an option; raises `UnknownName`."""
    option = OPTIONS.get(name)
    if option is None:
        expected = "one of those that `windlass config` lists"
        raise UnknownName("option", name, expected, did_you_mean(name, OPTIONS), where)
    return option


def _entries(content: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yields the options in a file by name; a table in the file may itself be one option."""
    for key, value in content.items():
        name = prefix + key
        nested = any(option.startswith(name + ".") for option in OPTIONS)
        if nested and isinstance(value, Mapping):
            yield from _entries(value, name + ".")
        else:
            yield name, value


def _lines(text: str) -> dict[str, int]:
    """Returns the line of each key in a TOML file, as far as two patterns can tell."""
    lines: dict[str, int] = {}
    table = ""
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if header := _TABLE_LINE.match(stripped):
            table = _plain(header[1]) + "."
            lines.setdefault(_plain(header[1]), number)
        elif key := _KEY_LINE.match(stripped):
            lines.setdefault(table + _plain(key[1]), number)
    return lines


def _plain(key: str) -> str:
    return ".".join(part.strip().strip("\"'") for part in key.split("."))


def _place(path: Path, lines: Mapping[str, int], key: str) -> str:
    """Returns FILE:LINE of a key, or of the table around it."""
    while key not in lines and "." in key:
        key = key.rpartition(".")[0]
    return f"{path}:{lines[key]}" if key in lines else str(path)


def _check(settings: Mapping[str, Setting]) -> None:
    """Raises if values contradict each other, naming the source of each."""
    try:
        validate(_assemble(settings))
    except InvalidInput as error:
        name = next((n for n, s in settings.items() if _concerns(error.field, s.option)), None)
        if name is None:
            raise
        setting = settings[name]
        others = [
            f"{n} is set by {other.source}"
            for n, other in settings.items()
            if n != name and other.source != DEFAULT and re.search(rf"\b{n}\b", error.expected)
        ]
        expected = ", where ".join([error.expected, *others])
        raise InvalidInput(_named(error.field, setting.source), expected, error.got) from None


def _assemble(settings: Mapping[str, Setting]) -> Config:
    return assemble({s.option.name: s.value for s in settings.values()})


def _concerns(field: str, option: Option) -> bool:
    """Returns whether an error's field is the option, or one entry of its table."""
    return any(
        field == name or field.startswith(f"{name}.") for name in (option.shown, option.name)
    )


def _named(name: str, source: str) -> str:
    return f"{name} ({source})"
