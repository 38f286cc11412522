"""The inputs of closed findings: a change must not bring their bugs back.

Inputs of open findings stay in the bucket: the inputs of a check may end up in public files.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Final

from windlass.domain.values.errors import WindlassError
from windlass_fuzz.findings.evidence import inputs_of
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.state.pipeline import Pipeline

MAX_INPUTS: Final = 200


async def fetch_closed_inputs(
    pipeline: Pipeline, folder: Path, notify: Callable[[str], None]
) -> int:
    """Copies inputs of closed findings to a folder, the latest finding first; returns how many."""
    store = FindingStore(pipeline)
    count = 0
    try:
        closed = [one async for one in store.all(notify) if one.state == "closed"]
        for finding in sorted(closed, key=lambda one: one.found_at_ms, reverse=True):
            for name in dict.fromkeys([finding.input, *(one.name for one in inputs_of(finding))]):
                if count >= MAX_INPUTS:
                    return count
                path = folder / f"{finding.key}-{name}"
                count += await store.fetch_input(finding, path, name)
    except WindlassError as error:
        notify(f"fuzzing without the inputs of closed findings: {error}")
    return count
