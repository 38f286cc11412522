"""Lets one process at a time triage or date a bug: several jobs may work on one solver."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from windlass.domain.values.errors import Conflict
from windlass_fuzz.state.leases import LeaseStore, process_name
from windlass_fuzz.state.pipeline import Pipeline

MARGIN_MS: Final = 5 * 60_000  # a search may end some time after its deadline


class Claims:
    """The claims of this process; each ends at the latest some minutes after `deadline_ms`."""

    def __init__(self, pipeline: Pipeline, deadline_ms: int) -> None:
        self._pipeline = pipeline
        self._deadline_ms = deadline_ms

    @asynccontextmanager
    async def of(self, name: str) -> AsyncIterator[bool]:
        """Yields whether the bug with this name is ours until the end of the block."""
        pipeline, now_ms = self._pipeline, self._pipeline.now_ms()
        process = process_name(os.getpid())
        store = LeaseStore(pipeline.leases, "triage", pipeline.holder, process)
        length_ms = max(self._deadline_ms - now_ms, 0) + MARGIN_MS
        token = pipeline.runtime.nonce()
        try:
            held = await store.take_first([name], token, now_ms, length_ms, waiting=[name])
        except Conflict:
            held = None  # so many claim bugs at the same time that another one has it
        try:
            yield held is not None
        finally:
            if held is not None:
                with suppress(Conflict):  # then it ends by itself
                    await store.release(name, token)
