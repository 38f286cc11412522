"""The worker's own secrets: read at start, given to jobs that name them, and masked in all output.

Everything reported about a job is masked: text, values and its log.
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

MASK: Final = b"***"

VARIABLE_START: Final = "WINDLASS_SECRET_"
VALUE_LIMIT: Final = 65_536  # bytes: larger ones do not fit into an environment

Key = tuple[str, str]  # namespace, name


class Masker:
    """Masks chunks as they come; `flush` returns what was held back."""

    def __init__(self, secrets: Iterable[bytes | str]) -> None:
        encoded = (secret.encode() if isinstance(secret, str) else secret for secret in secrets)
        self._secrets = tuple(sorted({secret for secret in encoded if secret}))
        self._held = b""
        self._masked = 0  # how many bytes at the start of `_held` are already masked

    def feed(self, data: bytes) -> bytes:
        """Returns the part that is safe to show."""
        if not self._secrets:
            return data
        buffer = self._held + data
        return self._show(buffer, self._open_end(buffer))

    def flush(self) -> bytes:
        """Returns the rest at the end of the stream."""
        return self._show(self._held, len(self._held))

    def _open_end(self, buffer: bytes) -> int:
        """Returns where the longest suffix starts that could be the beginning of a secret."""
        end = len(buffer)
        for secret in self._secrets:
            start = max(0, len(buffer) - len(secret) + 1)
            # Look only where its first byte occurs: most chunks contain none near their end.
            while 0 <= (start := buffer.find(secret[:1], start)) < end:
                if secret.startswith(buffer[start:]):
                    end = start
                start += 1
        return end

    def _show(self, buffer: bytes, end: int) -> bytes:
        """Returns the masked buffer up to `end` and holds the rest back."""
        shown: list[bytes] = []
        position = self._masked
        covered = self._masked
        for start, stop in self._spans(buffer):
            if start >= end:
                break
            if start >= covered:
                shown += (buffer[position:start], MASK)
            position = covered = max(covered, stop)
        shown.append(buffer[position:end])
        # A mask may extend into the held-back part, where another secret may begin.
        self._held, self._masked = buffer[end:], max(0, covered - end)
        return b"".join(shown)

    def _spans(self, buffer: bytes) -> list[tuple[int, int]]:
        """Returns every occurrence of every secret, in order."""
        found: list[tuple[int, int]] = []
        for secret in self._secrets:
            start = buffer.find(secret)
            while start >= 0:
                found.append((start, start + len(secret)))
                start = buffer.find(secret, start + 1)
        return sorted(found)


LINE_LEAST: Final = 8  # single lines of multi-line secrets are masked from this length on
_HIDDEN: Final = MASK.decode()


class Mask:
    """The secrets of one job, as bytes to search for."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._secrets = tuple(_forms(secrets))

    def stream(self) -> Masker:
        """Returns a masker for a log, whose pieces may split a secret."""
        return Masker(self._secrets)

    def text(self, text: str) -> str:
        """Returns the text without secrets."""
        masker = self.stream()
        data = text.encode("utf-8", "surrogatepass")
        return (masker.feed(data) + masker.flush()).decode("utf-8", "surrogatepass")

    def value(self, value: Any) -> Any:
        """Returns a JSON value without secrets anywhere in it; even a number may be one."""
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, dict):
            return {self.value(key): self.value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.value(item) for item in value]
        if isinstance(value, int | float) and not isinstance(value, bool):
            shown = str(value)
            return value if self.text(shown) == shown else _HIDDEN
        return value


def _forms(secrets: Iterable[str]) -> Iterable[bytes]:
    """Yields each secret and each of its lines: programs often print single lines."""
    for secret in secrets:
        yield secret.encode("utf-8", "surrogateescape")
        lines = secret.splitlines()
        if len(lines) > 1:
            for line in lines:
                if len(line.strip()) >= LINE_LEAST:
                    yield line.strip().encode("utf-8", "surrogateescape")


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
        """Returns the secrets a job names; those of its namespace override the general ones."""
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
