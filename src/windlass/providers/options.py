"""Reads a provider's options one by one, and refuses unknown ones by name."""

from collections.abc import Mapping
from typing import Any

from windlass.domain.values.errors import InvalidInput


class Options:
    """The `options` of a pool. Each getter checks one option; `done` refuses the rest."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._asked: list[str] = []

    def text(self, name: str, default: str | None = None) -> str:
        """Returns a text option; without a default it is required."""
        value = self._get(name, default)
        if value is None:
            raise InvalidInput(f"options.{name}", "given", "nothing")
        if not isinstance(value, str) or "\0" in value:
            raise InvalidInput(f"options.{name}", "text", value)
        return value

    def optional(self, name: str) -> str | None:
        """Returns a text option, or None."""
        return None if self._get(name, None) is None else self.text(name)

    def words(self, name: str, default: tuple[str, ...] | None = None) -> list[str]:
        """Returns a command as a list of arguments; no shell is involved."""
        value = self._get(name, default)
        if value is None:
            raise InvalidInput(f"options.{name}", "a command as a list of arguments", "nothing")
        fits = isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)
        if not fits or any("\0" in word for word in value):
            raise InvalidInput(f"options.{name}", "a list of arguments", value)
        return list(value)

    def texts(self, name: str) -> dict[str, str]:
        """Returns a mapping of names to texts."""
        value = self.mapping(name)
        for key, text in value.items():
            if not isinstance(text, str):
                raise InvalidInput(f"options.{name}.{key}", "text", text)
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        """Returns a mapping of names to values."""
        value = self._get(name, {})
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise InvalidInput(f"options.{name}", "names with values", value)
        return value

    def done(self) -> None:
        """Refuses options that no getter asked for."""
        for name in self._given:
            if name not in self._asked:
                known = ", ".join(self._asked) or "none: this provider has no options"
                raise InvalidInput(f"options.{name}", f"one of {known}", name)

    def _get(self, name: str, default: object) -> Any:
        self._asked.append(name)
        value = self._given.get(name)
        return default if value is None else value
