"""Makes inputs from other inputs by small changes to their words or bytes.

This is no match for an engine with coverage feedback, but it works with any program that reads
a file. Text is changed word by word, so that most results are still close to the solver's
language.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

NUMBERS: Final = (
    0, 1, 2, 7, 8, 15, 16, 31, 32, 63, 64, 100, 127, 128, 255, 256, 1000, 32_767, 65_535,
    2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63,
)  # fmt: skip
MAX_INPUT: Final = 1024 * 1024
_WORDS: Final = re.compile(rb"[A-Za-z_][\w.-]*|\d+|\s+|[^\w\s]")

Draw = Callable[[], float]
"""Returns the next number in [0, 1) of a seeded sequence."""


def mutate(data: bytes, others: Sequence[bytes], draw: Draw) -> bytes:
    """Applies one to four changes, mostly one; `others` are inputs to copy words from.

    The result is never empty: most programs accept an empty input, which would hide that they
    refuse the rest.
    """
    words = _WORDS.findall(data) if _is_text(data) else [data[n : n + 1] for n in range(len(data))]
    for _ in range(1 + int(draw() ** 3 * 4)):
        change = CHANGES[_below(len(CHANGES), draw)]
        words = change(words, others, draw)
    return b"".join(words)[:MAX_INPUT] or data


def _replace_number(words: list[bytes], others: Sequence[bytes], draw: Draw) -> list[bytes]:
    places = [n for n, word in enumerate(words) if word.isdigit()]
    if not places:
        return _flip(words, others, draw)
    place = places[_below(len(places), draw)]
    old = int(words[place][:20])
    choices = (0, NUMBERS[_below(len(NUMBERS), draw)], old + 1, max(old - 1, 0), old * 2)
    return _put(words, place, str(choices[_below(len(choices), draw)]).encode())


def _flip(words: list[bytes], _others: Sequence[bytes], draw: Draw) -> list[bytes]:
    if not words:
        return [bytes([_below(256, draw)])]
    place = _below(len(words), draw)
    word = bytearray(words[place])
    word[_below(len(word), draw)] ^= 1 << _below(7, draw)
    return _put(words, place, bytes(word))


def _delete(words: list[bytes], _others: Sequence[bytes], draw: Draw) -> list[bytes]:
    start = _below(len(words) + 1, draw)
    return words[:start] + words[start + 1 + _below(4, draw) :]


def _double(words: list[bytes], _others: Sequence[bytes], draw: Draw) -> list[bytes]:
    start = _below(len(words) + 1, draw)
    piece = words[start : start + 1 + _below(8, draw)]
    return words[:start] + piece * (1 + _below(3, draw)) + words[start:]


def _swap(words: list[bytes], _others: Sequence[bytes], draw: Draw) -> list[bytes]:
    if len(words) < 2:
        return words
    one, two = _below(len(words), draw), _below(len(words), draw)
    return _put(_put(words, one, words[two]), two, words[one])


def _borrow(words: list[bytes], others: Sequence[bytes], draw: Draw) -> list[bytes]:
    """Replaces a word with a few words of another input."""
    if not others:
        return _double(words, others, draw)
    lent = _WORDS.findall(others[_below(len(others), draw)])
    start = _below(len(lent) + 1, draw)
    place = _below(len(words) + 1, draw)
    return words[:place] + lent[start : start + 1 + _below(8, draw)] + words[place + 1 :]


CHANGES: Final = (_replace_number, _replace_number, _flip, _delete, _double, _swap, _borrow)


def _put(words: list[bytes], place: int, word: bytes) -> list[bytes]:
    return [*words[:place], word, *words[place + 1 :]]


def _below(limit: int, draw: Draw) -> int:
    return int(draw() * limit)


def _is_text(data: bytes) -> bool:
    return b"\0" not in data[:4096]
