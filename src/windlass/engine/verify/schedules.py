"""S17: at most one run per (schedule, slot), by the log and by the rows."""

from collections.abc import Mapping
from typing import Any

from windlass.domain.schedules import RunState
from windlass.engine.verify.findings import Findings
from windlass.engine.verify.known import SnapshotIndex
from windlass.engine.verify.past import Past


def note_start(past: Past, found: Findings, data: Mapping[str, Any], seq: int) -> None:
    """Applies the start of a slot, which the log may contain once."""
    place = (data["schedule"], data["slot"])
    if place in past.slots:
        message = f"schedule {data['name']} started slot {data['slot']} as workflow "
        found.add("S17", f"{message}{past.slots[place]} and again as {data['workflow']}", 0, seq)
    past.slots[place] = data["workflow"]


def check_schedules(known: SnapshotIndex, past: Past, found: Findings) -> None:
    """Checks that each slot has one run, the one that the log says was started."""
    seen: set[tuple[int, int]] = set()
    last = {row.id: row.last_slot for row in known.snapshot.schedules}
    for run in known.snapshot.schedule_runs:
        if run.slot is None:
            continue
        place = (run.schedule, run.slot)
        if place in seen:
            found.add("S17", f"schedule {run.schedule} has two runs of slot {run.slot}")
        seen.add(place)
        if run.slot > last.get(run.schedule, 0):
            message = f"schedule {run.schedule} may run slot {run.slot} again: it has run {run.id}"
            found.add("S17", message)
        logged = past.slots.get(place, run.workflow)
        if run.state in (RunState.STARTED, RunState.ENDED) and logged != run.workflow:
            message = f"slot {run.slot} of schedule {run.schedule} is workflow {run.workflow}, "
            found.add("S17", f"{message}the log says {logged}")
