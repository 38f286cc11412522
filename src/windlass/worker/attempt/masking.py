"""Masks the secrets of one job in everything reported about it: text, values and its log.

In a stream of bytes they are found across chunk boundaries too. Overlapping occurrences become one
mask. It holds back at most the length of the longest secret minus one byte.
"""

from collections.abc import Iterable
from typing import Any, Final

MASK: Final = b"***"


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
    """Yields each secret, and each line of a multi-line one, since programs often show single
    lines.
    """
    for secret in secrets:
        yield secret.encode("utf-8", "surrogateescape")
        lines = secret.splitlines()
        if len(lines) > 1:
            for line in lines:
                if len(line.strip()) >= LINE_LEAST:
                    yield line.strip().encode("utf-8", "surrogateescape")
