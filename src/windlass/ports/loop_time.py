"""Waits on the event loop, whose clock the simulator controls, and shares it with others.

Long work goes to a thread or is done in steps, and pauses the garbage collector. A large submission
creates a million objects that all live until the end: the collector would walk them again and again
and find nothing, which takes a third of the time, and everybody waits for it. To free them takes
0.1 s or more in one piece, so `LongList` does it in steps.

`pass_time` is for retries deep inside an implementation that has no `Clock`. Code that has one uses
it.
"""

import asyncio
import gc
from collections.abc import Awaitable, Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from types import ModuleType
from typing import Any, Final, TypeVar

MANY: Final = 5_000  # jobs in a submission from which a pause pays off

# Objects between two collections, as Python has it: short ones. Programs load with more.
COLLECT: Final = 700
LINGER_S: Final = 2.0  # by then most of what was made in a pause is gone, and need not be walked
MAX_PAUSE_S: Final = 300.0  # a longer pause of the collector does not linger


class _Pauses:
    """The open pauses of the collector."""

    def __init__(self) -> None:
        self.open: list[bool] = []  # for each, whether the collector was on before
        self.since = 0.0  # when the first began, by the time of the loop
        self.linger = False  # whether each lasts a while longer, as in a server


_PAUSES: Final = _Pauses()

# What the running task works on: a route, or a loop. Tasks that it starts work on the same.
DOING: Final[ContextVar[str]] = ContextVar("windlass_doing", default="other")

T = TypeVar("T")

SMALL: Final = 2_000  # jobs, dependencies or rows that need no thread
SLICE_S: Final = 0.01  # of processor time, after which long work lets others go first

# Whether this runs in a thread without the loop in which it can wait: see `to_loop`.
OUTSIDE: Final[ContextVar[bool]] = ContextVar("windlass_outside", default=False)

# Whether this runs inside a transaction that must reach its end without waiting.
INLINE: Final[ContextVar[bool]] = ContextVar("windlass_inline", default=False)

PAGE: Final = 5_000  # jobs that one step of the event loop may take
FREED: Final = 1_000  # items that one step frees


def spare_what_is_loaded() -> None:
    """Lets the collector never look again at what exists now; for a program that has started.

    Modules live as long as the program. To walk them takes the collector about 0.1 s each time,
    also now: the little garbage of their loading stays. From now on, the collector stays off for a
    while after each pause: its first walk would be over everything that was made meanwhile.
    """
    _PAUSES.linger = True
    gc.freeze()
    gc.set_threshold(COLLECT)


def pause_gc() -> None:
    """Pauses the collector until `resume_gc` was called as often."""
    pauses = _PAUSES.open
    if not pauses:
        _PAUSES.since = _loop_time()
    pauses.append(gc.isenabled() if not pauses else pauses[0])
    gc.disable()


def resume_gc() -> None:
    """Ends one pause; the collector goes on after the last, in a server a while later."""
    now = _loop_time()
    if _PAUSES.linger and now and now - _PAUSES.since < MAX_PAUSE_S:
        asyncio.get_running_loop().call_later(LINGER_S, _end_pause)
    else:
        _end_pause()


def _end_pause() -> None:
    was_on = _PAUSES.open.pop()
    if not _PAUSES.open and was_on:
        gc.enable()


def _loop_time() -> float:
    """Returns the time of the running loop; 0 in a thread without one."""
    try:
        return asyncio.get_running_loop().time()
    except RuntimeError:
        return 0.0


@contextmanager
def gc_paused() -> Iterator[None]:
    """Pauses the collector; it resumes when the last open pause ends."""
    pause_gc()
    try:
        yield
    finally:
        resume_gc()


class _Turn:
    """Waits for nothing."""

    def __await__(self) -> Generator[None, None, None]:
        yield


class _Step:
    """The step of a task that runs now, and how much processor time it has taken."""

    def __init__(self) -> None:
        self.taken: Callable[[], float] = lambda: 0.0  # in seconds; a server measures it


STEP: Final = _Step()


async def give_way() -> None:
    """Lets all others on the loop that are ready go first; not from inside a transaction."""
    if not INLINE.get():
        await _Turn()


async def to_loop() -> None:
    """Goes on in the event loop, if this began in the thread of a blocking caller."""
    if OUTSIDE.get():
        await _Turn()


async def give_way_if_long() -> None:
    """Lets others go first if the running step has taken a while; for use in every long loop."""
    if not INLINE.get() and STEP.taken() > SLICE_S:
        await _Turn()


async def aside(weight: int, work: Callable[[], T]) -> T:
    """Does this in a thread if it is much, so that the loop goes on.

    The thread has the interpreter for 5 ms at a time. `work` touches nothing that others change.
    """
    if weight <= SMALL or INLINE.get():
        return work()

    with gc_paused():
        return await asyncio.get_running_loop().run_in_executor(None, work)


async def load(module: str) -> ModuleType:
    """Imports a large module in a thread, when it is first needed, so that the loop goes on."""
    with gc_paused():
        return await asyncio.get_running_loop().run_in_executor(None, import_module, module)


async def pass_time(seconds: float) -> None:
    """Returns after this many seconds of the loop's time."""
    loop = asyncio.get_running_loop()
    passed: asyncio.Future[None] = loop.create_future()
    timer = loop.call_later(seconds, _wake, passed)
    try:
        await passed
    finally:
        timer.cancel()


def _wake(passed: asyncio.Future[None]) -> None:
    # A wait that was cancelled just now has not taken its timer back yet.
    if not passed.done():
        passed.set_result(None)


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
    pause_gc()  # the collector would walk what is left again and again
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:  # a thread, in which each turn of this loop lets others go on
        while items:
            del items[-FREED:]
        resume_gc()
    else:
        _free_some(items, loop)


def _free_some(items: list[Any], loop: asyncio.AbstractEventLoop) -> None:
    del items[-FREED:]
    if items:
        loop.call_soon(_free_some, items, loop)
    else:
        resume_gc()


async def all_of(doing: Iterable[Awaitable[T]]) -> list[T]:
    """Waits for all of them, then returns the answers or raises the first error."""
    done = await asyncio.gather(*doing, return_exceptions=True)
    for outcome in done:
        if isinstance(outcome, BaseException):
            raise outcome
    return [outcome for outcome in done if not isinstance(outcome, BaseException)]
