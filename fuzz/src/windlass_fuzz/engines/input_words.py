"""Tells the words that a message repeats from the input from the program's own words.

The program's own words are in its files. A word of an input among such words names the input, not
the bug: otherwise each input would be a finding of its own.
"""

import mmap
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from windlass_fuzz.engines.sanitizers import MARKS

MAX_READ: Final = 512 * 1024 * 1024  # bytes of a build
MAX_KNOWN: Final = 20_000  # cached answers
LOOKED_AT: Final = 500  # characters of a message
BESIDE: Final = 4  # characters before or after a word that prove it is in a message
SHORT: Final = 3  # shorter words occur in any program between two spaces
# Words, and characters that do not belong to a word or number.
_WORD: Final = re.compile(r"[^\W\d]\w*|[^\w\s]{2,}|(?<!\S)[^\w\s](?!\S)")


class ProgramText:
    """The text of a build's files; each answer is cached."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._known: dict[str, bool] = {}

    def contains(self, text: str) -> bool:
        """Returns whether a file of the build contains this text."""
        if text not in self._known:
            if len(self._known) >= MAX_KNOWN:
                self._known.clear()
            wanted = text.encode(errors="surrogateescape")
            self._known[text] = any(file.find(wanted) >= 0 for file in self._files())
        return self._known[text]

    def _files(self) -> Iterator[mmap.mmap]:
        left = MAX_READ
        for path in sorted(self._folder.rglob("*")):
            if not path.is_file() or not (size := path.stat().st_size) or size > left:
                continue
            left -= size
            with path.open("rb") as file, mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ) as text:
                yield text


def has_checker(program: ProgramText, checker: str) -> bool:
    """Returns whether a build contains a sanitizer, or assertions."""
    return any(program.contains(mark) for mark in MARKS.get(checker, ()))


class InputWords(NamedTuple):
    """An input as text, and the program that may repeat it."""

    text: str = ""
    program: ProgramText | None = None

    def blank(self, said: str) -> str:
        """Returns a message with `*` for what it repeats of the input.

        Nothing is replaced in a message if the program's files contain none of its words: it comes
        from elsewhere.
        """
        if self.program is None or not self.text:
            return said
        said = said[:LOOKED_AT]
        words = [(found.start(), found.end()) for found in _WORD.finditer(said)]
        sure = [self._is_sure(said, start, end) for start, end in words]
        own = [sure[n] or self._is_alone(said, words, sure, n) for n in range(len(words))]
        if not any(own):
            return said
        kept, place = "", 0
        for number, (start, end) in enumerate(words):
            if start < place or own[number] or said[start:end] not in self.text:
                continue
            later = (words[n][0] for n in range(number + 1, len(words)) if own[n])
            start, end = self._whole(said, start, end, next(later, len(said)))
            kept += f"{said[place : max(start, place)]}*"
            place = end
        return re.sub(r"\*(?:\W{0,3}\*)+", "*", kept + said[place:])

    def _is_sure(self, said: str, start: int, end: int) -> bool:
        """Returns whether the program's files contain a word together with its neighbours."""
        assert self.program is not None
        before, after = said[max(start - BESIDE, 0) : end], said[start : end + BESIDE]
        return (start > 0 and self.program.contains(before)) or (
            end < len(said) and self.program.contains(after)
        )

    def _is_alone(
        self, said: str, words: list[tuple[int, int]], sure: list[bool], number: int
    ) -> bool:
        """Returns whether a word is the program's own although its neighbours are not."""
        assert self.program is not None
        start, end = words[number]
        if end - start < SHORT or (
            number and sure[number - 1] and said[words[number - 1][1] : start].isspace()
        ):
            return False
        return self.program.contains(said[max(start - 1, 0) : end + 1])

    def _whole(self, said: str, start: int, end: int, most: int) -> tuple[int, int]:
        """Returns everything that is repeated around a word, up to the program's next own word."""
        while end < most and said[start : end + 1] in self.text:
            end += 1
        while start and not (said[start - 1].isalnum() or said[start - 1].isspace()):
            if said[start - 1 : end] not in self.text:
                break
            start -= 1
        return start, len(said[:end].rstrip())
