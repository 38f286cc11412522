"""The options of a provider, read one by one: what is not asked for is refused by name."""

from collections.abc import Mapping
from typing import Any

from windlass.domain.values.errors import InvalidInput


class Options:
    """`options` of a pool. Each getter says what it expects; `done` refuses the rest."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self._given = given
        self._asked: list[str] = []

    def text(self, name: str, default: str | None = None) -> str:
        """Text; without a default it must be there."""
        value = self._get(name, default)
        if value is None:
            raise InvalidInput(f"options.{name}", "given", "nothing")
        if not isinstance(value, str) or "\0" in value:
            raise InvalidInput(f"options.{name}", "text", value)
        return value

    def optional(self, name: str) -> str | None:
        """Text, or nothing."""
        return None if self._get(name, None) is None else self.text(name)

    def words(self, name: str, default: tuple[str, ...] | None = None) -> list[str]:
        """A command as a list of words, which no shell looks at."""
        value = self._get(name, default)
        if value is None:
            raise InvalidInput(f"options.{name}", "a command as a list of words", "nothing")
        fits = isinstance(value, list | tuple) and all(isinstance(word, str) for word in value)
        if not fits or any("\0" in word for word in value):
            raise InvalidInput(f"options.{name}", "a list of words", value)
        return list(value)

    def texts(self, name: str) -> dict[str, str]:
        """Names with texts."""
        value = self.mapping(name)
        for key, text in value.items():
            if not isinstance(text, str):
                raise InvalidInput(f"options.{name}.{key}", "text", text)
        return value

    def mapping(self, name: str) -> dict[str, Any]:
        """Names with values."""
        value = self._get(name, {})
        if not isinstance(value, dict) or not all(isinstance(key, str) for key in value):
            raise InvalidInput(f"options.{name}", "names with values", value)
        return value

    def done(self) -> None:
        """Refuse what nobody asked for."""
        for name in self._given:
            if name not in self._asked:
                known = ", ".join(self._asked) or "none: this provider has no options"
                raise InvalidInput(f"options.{name}", f"one of {known}", name)

    def _get(self, name: str, default: object) -> Any:
        self._asked.append(name)
        value = self._given.get(name)
        return default if value is None else value
