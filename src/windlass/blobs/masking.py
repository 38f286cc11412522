"""Keeping declared secrets out of a stream of bytes, also where one is cut in two.

All occurrences count, overlapping ones too; what they cover together becomes one mask.
At most one byte less than the longest secret is held back.
"""

from collections.abc import Iterable
from typing import Final

MASK: Final = b"***"


class Masker:
    """Feed it chunks; `flush` gives what was held back at the end."""

    def __init__(self, secrets: Iterable[bytes | str]) -> None:
        encoded = (secret.encode() if isinstance(secret, str) else secret for secret in secrets)
        self._secrets = tuple(sorted({secret for secret in encoded if secret}))
        self._held = b""
        self._masked = 0  # how many bytes at the start of `_held` have been masked already

    def feed(self, data: bytes) -> bytes:
        """What may be shown by now."""
        if not self._secrets:
            return data
        buffer = self._held + data
        return self._show(buffer, self._open_end(buffer))

    def flush(self) -> bytes:
        """The end of the stream: nothing can follow what was held back."""
        return self._show(self._held, len(self._held))

    def _open_end(self, buffer: bytes) -> int:
        """Where the longest ending begins that may be the beginning of a secret."""
        end = len(buffer)
        for secret in self._secrets:
            start = max(0, len(buffer) - len(secret) + 1)
            # Only where its first byte stands: most chunks end in none of them.
            while 0 <= (start := buffer.find(secret[:1], start)) < end:
                if secret.startswith(buffer[start:]):
                    end = start
                start += 1
        return end

    def _show(self, buffer: bytes, end: int) -> bytes:
        """Show the buffer up to `end` and hold the rest back."""
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
        # A mask may reach into what is held back, where another secret may begin.
        self._held, self._masked = buffer[end:], max(0, covered - end)
        return b"".join(shown)

    def _spans(self, buffer: bytes) -> list[tuple[int, int]]:
        """Every occurrence of every secret, in order."""
        found: list[tuple[int, int]] = []
        for secret in self._secrets:
            start = buffer.find(secret)
            while start >= 0:
                found.append((start, start + len(secret)))
                start = buffer.find(secret, start + 1)
        return sorted(found)
