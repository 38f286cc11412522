"""What is known about one parser, and how an input is tried on it."""

import time
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from windlass.domain.values.errors import WindlassError
from windlass.ports.loop_time import gc_paused

# Of processor time: what every input may use, and what each further byte adds. A parser whose
# time grows with the square of the input needs far more for the long inputs that are tried.
FLOOR_SECONDS: Final = 0.25
SECONDS_PER_BYTE: Final = 25e-6


class Parser(NamedTuple):
    """`read` parses bytes and fails if a property does not hold; `refuses` are its errors."""

    name: str
    read: Callable[[bytes], object]
    seeds: tuple[bytes, ...]
    refuses: tuple[type[Exception], ...] = (WindlassError,)
    most: int = 65_536  # bytes; longer inputs do not reach it
    floor: float = FLOOR_SECONDS


def try_input(parser: Parser, data: bytes) -> None:
    """Parses an input; fails on any error but the parser's own, and if it takes too long.

    What other tests have left in memory is not collected meanwhile: that may take a second.
    """
    data = data[: parser.most]
    with gc_paused():
        started = time.thread_time()
        try:
            parser.read(data)
        except parser.refuses:
            pass
        used = time.thread_time() - started
    most = parser.floor + SECONDS_PER_BYTE * len(data)
    assert used <= most, f"{parser.name} used {used:.2f} s for {len(data)} bytes: {data[:200]!r}"


def of_text(read: Callable[[str], object]) -> Callable[[bytes], object]:
    """Returns a reader of bytes; those that are not UTF-8 become lone surrogates, as in `argv`."""

    def decode_and_read(data: bytes) -> object:
        return read(data.decode("utf-8", "surrogateescape"))

    return decode_and_read


def round_trip(read: Callable[[str], Any], show: Callable[[Any], str]) -> Callable[[bytes], object]:
    """Returns a reader that also reads what it shows: the meaning must stay the same."""

    def there_and_back(text: str) -> None:
        value = read(text)
        shown = show(value)
        assert read(shown) == value, (value, shown)

    return of_text(there_and_back)
