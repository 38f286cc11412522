"""Own CPU time of the functions of the engine and the SQLite store, a batch at a time.

Every function that is called a few times a batch is wrapped by a stopwatch; those called
for each job are not, their time counts for the caller. That disturbs next to nothing, so
the figures add up to the real ones. Changes the modules it looks at: for one run only.
"""

import importlib
import inspect
import time
from collections import Counter
from collections.abc import Callable
from types import ModuleType
from typing import Any

MODULES = (
    "engine.claim.claims", "engine.claim.search", "engine.transaction.group_commit",
    "engine.transaction.unit_of_work", "engine.engine", "engine.after_commit",
    "engine.commands.submit", "engine.commands.sync", "engine.attempts.reports",
    "engine.submit.write_jobs", "engine.sync.sync", "domain.matching.claim_planning",
    "domain.job.job",
    "store.sqlite.bulk", "store.sqlite.checkpoints", "store.sqlite.flow",
    "store.sqlite.leases", "store.sqlite.places", "store.sqlite.roles",
    "store.sqlite.store", "store.sqlite.session",
)  # fmt: skip
CALLS_A_BATCH = 20


class Stages:
    """The stopwatches. `own` and `calls` are by the name of the function."""

    def __init__(self) -> None:
        self.own: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()
        self._inner = [0]
        self._changed: list[tuple[Any, str, Any]] = []

    def watch(self, skip: set[str]) -> None:
        """Wrap all functions but those in `skip`."""
        loaded = [importlib.import_module(f"windlass.{name}") for name in MODULES]
        for module in loaded:
            for name, thing in list(vars(module).items()):
                if getattr(thing, "__module__", "") != module.__name__:
                    continue
                if inspect.isfunction(thing):
                    self._wrap_everywhere(loaded, name, thing, skip)
                elif inspect.isclass(thing) and not issubclass(thing, tuple):
                    for method, function in list(vars(thing).items()):
                        if inspect.isfunction(function):
                            self._wrap(thing, method, function, skip)

    def restore(self) -> None:
        """Put the functions back as they were."""
        for owner, name, original in reversed(self._changed):
            setattr(owner, name, original)
        self._changed.clear()
        self.own.clear()
        self.calls.clear()

    def called_often(self, batches: int) -> set[str]:
        """Functions that are called for single jobs."""
        return {name for name, calls in self.calls.items() if calls > batches * CALLS_A_BATCH}

    def _wrap_everywhere(
        self, loaded: list[ModuleType], name: str, function: Any, skip: set[str]
    ) -> None:
        for module in loaded:
            if vars(module).get(name) is function:
                self._wrap(module, name, function, skip)

    def _wrap(self, owner: Any, name: str, function: Any, skip: set[str]) -> None:
        label = f"{function.__module__.removeprefix('windlass.')}.{function.__qualname__}"
        if name.startswith("__") or label in skip or inspect.isasyncgenfunction(function):
            return
        timed = self._timed_async if inspect.iscoroutinefunction(function) else self._timed
        self._changed.append((owner, name, function))
        setattr(owner, name, timed(label, function))

    def _timed(self, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **named: Any) -> Any:
            began = self._enter()
            try:
                return function(*args, **named)
            finally:
                self._leave(label, began)

        return timed

    def _timed_async(self, label: str, function: Callable[..., Any]) -> Callable[..., Any]:
        async def timed(*args: Any, **named: Any) -> Any:
            began = self._enter()
            try:
                return await function(*args, **named)
            finally:
                self._leave(label, began)

        return timed

    def _enter(self) -> int:
        self._inner.append(0)
        return time.process_time_ns()

    def _leave(self, label: str, began: int) -> None:
        took = time.process_time_ns() - began
        self.own[label] += took - self._inner.pop()
        self._inner[-1] += took
        self.calls[label] += 1
