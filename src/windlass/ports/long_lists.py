"""Long lists, such as all jobs of one request: taken page by page, and freed in steps.

To free a million objects takes 0.1 s or more in one piece, wherever the last name of their list
goes out of use.
"""

import asyncio
from collections.abc import Iterator, Sequence
from typing import Any, Final, TypeVar

from windlass.ports.gc_pause import pause, resume

T = TypeVar("T")

PAGE: Final = 5_000  # jobs that one step of the event loop may take
FREED: Final = 1_000  # items that one step frees


def pages(items: Sequence[T], size: int = PAGE) -> Iterator[Sequence[T]]:
    """Yields the items in slices."""
    for first in range(0, len(items), size):
        yield items[first : first + size]


class LongList(list[T]):
    """A list whose items are freed in steps, between which the event loop goes on."""

    __slots__ = ()

    def __del__(self) -> None:
        """Keeps the items, unless they are few, and frees them bit by bit."""
        if len(self) > FREED:
            _free(list(self))


def _free(items: list[Any]) -> None:
    pause()  # the collector would walk what is left again and again
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # a thread, in which each turn of this loop lets others go on
        while items:
            del items[-FREED:]
        resume()
    else:
        _free_some(items, loop)


def _free_some(items: list[Any], loop: asyncio.AbstractEventLoop) -> None:
    del items[-FREED:]
    if items:
        loop.call_soon(_free_some, items, loop)
    else:
        resume()
