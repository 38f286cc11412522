"""The tasks of a page's main thread, from a trace of Chromium."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import msgspec
from playwright.sync_api import Browser, Page

CATEGORIES: Final = ["toplevel", "devtools.timeline"]
THREAD: Final = "CrRendererMain"
TASK: Final = "ThreadControllerImpl::RunTask"


class Task(msgspec.Struct, frozen=True):
    """A task, in milliseconds: by the clock, and of processor time."""

    wall: float
    cpu: float


class Recording:
    """What was recorded; empty until the recording ends."""

    def __init__(self) -> None:
        self.tasks: list[Task] = []

    def longest(self) -> Task:
        """Returns the longest by the clock and by processor time; they may be different ones."""
        return Task(max(task.wall for task in self.tasks), max(task.cpu for task in self.tasks))

    def over(self, ms: float) -> int:
        """Returns how many took longer, of processor time."""
        return sum(task.cpu > ms for task in self.tasks)


@contextmanager
def recorded(browser: Browser, page: Page) -> Iterator[Recording]:
    """Records the main thread of a page."""
    recording = Recording()
    browser.start_tracing(page=page, categories=CATEGORIES)
    try:
        yield recording
    finally:
        recording.tasks = tasks_of(json.loads(browser.stop_tracing())["traceEvents"])


def tasks_of(events: list[dict[str, Any]]) -> list[Task]:
    """Returns the tasks of main threads, in the order of the trace."""
    threads = {
        (event["pid"], event["tid"])
        for event in events
        if event.get("name") == "thread_name" and event["args"].get("name") == THREAD
    }
    return [
        Task(event["dur"] / 1000, event.get("tdur", 0) / 1000)
        for event in events
        if event.get("name") == TASK
        and event.get("ph") == "X"
        and (event["pid"], event["tid"]) in threads
    ]
