"""Runs a function in this process as a worker's process would, without any queue."""

import os
import sys
from array import array
from collections.abc import Callable
from typing import Any, cast

import msgspec

from windlass.domain.values.errors import Conflict
from windlass.executors.python.child import JOB_VARIABLES, PAGE_WORDS, Server
from windlass.executors.python.messages import (
    CURRENT,
    Answer,
    Call,
    Done,
    Failed,
    Progress,
    Redirect,
)
from windlass.messages.steps import StepReply, StepRequest
from windlass.tasks.current import SCRATCH, Current
from windlass.tasks.steps import STEP

NO_QUEUE = "this function runs without a queue: it cannot submit jobs or ask the server"


class LocalServer(Server):
    """Replaces the process of a worker and its agent.

    `tell` receives the function's progress.
    """

    alone = True

    def __init__(self, tell: Callable[[object], None] = lambda _: None) -> None:
        nowhere = cast(Any, None)
        super().__init__(nowhere, nowhere, array("Q", [0] * PAGE_WORDS), -1)
        self._tell = tell

    def call(self, call: Call) -> Done | Failed | Redirect:
        """Runs one call and returns how it ended; tracebacks go to the standard error."""
        self._page[CURRENT] = call.seq
        try:
            return self._run(call)
        finally:
            self.flush_streams()
            self._page[CURRENT] = 0

    def _enter(self, call: Call) -> Current:
        """Notes the variables that it sets, so that they end with the call, as secrets do."""
        names = [*JOB_VARIABLES, *call.variables]
        before = {name: os.environ.get(name) for name in names}
        self._workflow = None
        job = super()._enter(call)
        self._shadowed = {**before, **self._shadowed}
        return job

    def _send(self, message: msgspec.Struct) -> None:
        if isinstance(message, Progress):
            self._tell(msgspec.json.decode(message.value))

    def log(self, seq: int, text: str) -> None:
        """Writes to the standard error, as a line of a job's log."""
        del seq
        sys.stderr.write(text)

    def ask(self, seq: int, body: bytes, what: str = "") -> Answer:
        """Gives it a folder, which stays, and its own steps; refuses what needs a queue."""
        if body == SCRATCH:
            return Answer(0, msgspec.json.encode(None))
        if what != STEP:
            raise Conflict("no_queue", NO_QUEUE)
        request = msgspec.json.decode(body, type=StepRequest)
        if request.do == "sleep":
            self.log(seq, f"windlass.sleep: not waiting {(request.wait_ms or 0) / 1000:g} s\n")
        elif request.do != "store":
            named = request.name or repr(request.question)
            raise Conflict("no_queue", f"{NO_QUEUE} ({request.do} {named})")
        return Answer(0, msgspec.json.encode(StepReply("done", request.value)))

    async def ask_async(self, seq: int, body: bytes, what: str = "") -> Answer:
        """Does the same in async functions."""
        return self.ask(seq, body, what)
