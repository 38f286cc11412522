"""Writes events to the server's log: a line for people, and its facts for machines."""

from collections.abc import Callable
from typing import Any

import structlog

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.rows.event_lines import reason_of
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.values.ids import shown_attempt
from windlass.domain.values.quantities import format_moment
from windlass.engine.history.events import Line

log = structlog.get_logger("windlass.events")


def write_line(line: Line, trace_of: Callable[[int], str | None] | None = None) -> None:
    """Logs one line; only structured formats show the facts, with the job's trace if known."""
    facts = {} if line.event is None else _facts(line.event, line.worker)
    if line.event is not None and trace_of is not None:
        trace = trace_of(line.event.job)
        facts |= {} if trace is None else {"trace_id": trace}
    log.log(int(line.level), line.text, facts=facts)


def _facts(event: Event, worker: str) -> dict[str, Any]:
    facts = {
        "seq": event.seq,
        "at": format_moment(event.at),
        "kind": EventKind(event.kind).name.lower(),
        "job": event.job,
        "attempt": shown_attempt(event.attempt),
        "worker": worker,
        "from": STATE_BY_CODE[event.source],
        "to": STATE_BY_CODE[event.to],
        "reason": _reason(event, worker),
        "actor": event.actor,
    }
    return {name: value for name, value in facts.items() if value}


def _reason(event: Event, worker: str) -> str | None:
    """Returns why it happened; the event log stores no text for what explains itself."""
    to = STATE_BY_CODE[event.to]
    if event.kind != EventKind.JOB or to is None:
        return event.reason
    return reason_of(event, to, worker or str(event.worker))
