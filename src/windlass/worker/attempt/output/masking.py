"""Hiding the secrets of one job in what is said of it: text, values and its log."""

from collections.abc import Iterable
from typing import Any, Final

from windlass.blobs.masking import MASK, Masker

LINE_LEAST: Final = 8  # so long a line of a secret of several is also hidden by itself
_HIDDEN: Final = MASK.decode()


class Mask:
    """The secrets of one job, as bytes to be found."""

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
        """Returns a JSON value without secrets anywhere in it; a number may be one too."""
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
    """Yields each secret, and each line of one with several: programs often show single lines."""
    for secret in secrets:
        yield secret.encode("utf-8", "surrogateescape")
        lines = secret.splitlines()
        if len(lines) > 1:
            for line in lines:
                if len(line.strip()) >= LINE_LEAST:
                    yield line.strip().encode("utf-8", "surrogateescape")
