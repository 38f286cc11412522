"""The worker's own secrets: read at start, given to jobs that name them, and masked in all output
of a job.

Their values pass through no server and no store. They come from files and from variables of the
agent's environment; the command line, which everybody on a machine can read, only names files.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from windlass.domain.access.secrets import (
    EVERYONE,
    advertise,
    check_secret_name,
    check_secret_namespace,
)
from windlass.domain.values.errors import InvalidInput
from windlass.worker.attempt.masking import Mask

VARIABLE_START: Final = "WINDLASS_SECRET_"
VALUE_LIMIT: Final = 65_536  # bytes: larger ones do not fit into an environment

Key = tuple[str, str]  # namespace, name


class Secrets:
    """What a worker may give to jobs. It is never shown, logged or sent."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[Key, str] | None = None) -> None:
        self._values = dict(values or {})

    def __repr__(self) -> str:
        return f"<{len(self._values)} secrets>"

    @property
    def metadata(self) -> dict[str, Any]:
        """Returns what the worker reports about them: names and namespaces, never values."""
        return dict(advertise(self._values))

    def missing(self, names: Sequence[str], namespace: str) -> list[str]:
        """Returns the names that a job of this namespace cannot get here."""
        return [name for name in names if self._find(name, namespace) is None]

    def pick(self, names: Sequence[str], namespace: str) -> dict[str, str]:
        """Returns the secrets a job names; its namespace's own override those for all
        namespaces.
        """
        found = {name: self._find(name, namespace) for name in names}
        return {name: value for name, value in found.items() if value is not None}

    def mask(self, names: Sequence[str], namespace: str) -> Mask:
        """Returns the mask for a job's secrets."""
        return Mask(self.pick(names, namespace).values())

    def _find(self, name: str, namespace: str) -> str | None:
        return self._values.get((namespace, name)) or self._values.get((EVERYONE, name))


def load_secrets(
    environ: Mapping[str, str], given: Iterable[str] = (), folder: Path | None = None
) -> Secrets:
    """Reads secrets from variables, a folder, and `[NAMESPACE/]NAME=@FILE`; later ones win."""
    values: dict[Key, str] = {}
    for variable, value in environ.items():
        if variable.startswith(VARIABLE_START):
            key = _key(variable.removeprefix(VARIABLE_START), variable)
            values[key] = _checked(value, variable)
    if folder is not None:
        values.update(_read_folder(folder))
    for text in given:
        name, separator, place = text.partition("=@")
        if not separator or not place:
            # The given text may be a secret, so it is not repeated.
            expected = "NAME=@FILE or NAMESPACE/NAME=@FILE, with the secret in the file"
            raise InvalidInput("secret", expected, f"{name.partition('=')[0]}=…")
        key = _key(name, "secret")
        values[key] = _read(Path(place), f"secret {name}")
    return Secrets(values)


def _read_folder(folder: Path) -> dict[Key, str]:
    """Reads one secret from each file; files in a subfolder are for that namespace."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InvalidInput("secrets", "a folder of files", str(error)) from None
    values: dict[Key, str] = {}
    for entry in entries:
        if entry.name.startswith("."):  # how some mounts keep their versions
            continue
        files = sorted(entry.iterdir()) if entry.is_dir() else [entry]
        for file in files:
            if not file.name.startswith("."):
                name = file.name if file is entry else f"{entry.name}/{file.name}"
                values[_key(name, "secrets")] = _read(file, f"secrets {name}")
    return values


def _key(text: str, field: str) -> Key:
    namespace, slash, name = text.rpartition("/")
    check_secret_name(name, field)
    if slash:
        check_secret_namespace(namespace, field)
    return namespace or EVERYONE, name


def _read(path: Path, field: str) -> str:
    try:
        text = path.read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise InvalidInput(field, "a readable file of text", f"{path}: {reason}") from None
    return _checked(text.removesuffix("\n").removesuffix("\r"), field)


def _checked(value: str, field: str) -> str:
    if not value:
        raise InvalidInput(field, "a secret of at least one character", "nothing")
    if "\0" in value or len(value.encode("utf-8", "surrogateescape")) > VALUE_LIMIT:
        expected = f"text without NUL characters of at most {VALUE_LIMIT} bytes"
        raise InvalidInput(field, expected, "another value")
    return value
