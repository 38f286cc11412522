"""Writes events to the server's log: a line for people, and its facts for machines."""

from typing import Any

import structlog

from windlass.domain.lifecycle.attempts import shown_attempt
from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.rows.events import Event, EventKind
from windlass.domain.values.times import format_moment
from windlass.engine.history.event_lines import Line

log = structlog.get_logger("windlass.events")


def write_line(line: Line) -> None:
    """Logs one line; only structured formats show the facts."""
    facts = {} if line.event is None else _facts(line.event, line.worker)
    log.log(int(line.level), line.text, facts=facts)


def _facts(event: Event, worker: str) -> dict[str, Any]:
    facts = {
        "seq": event.seq,
        "at": format_moment(event.at),
        "kind": EventKind(event.kind).name.lower(),
        "job": event.job,
        "attempt": shown_attempt(event.attempt),
        "worker": worker,
        "from": STATE_BY_CODE[event.frm],
        "to": STATE_BY_CODE[event.to],
        "reason": event.reason,
        "actor": event.actor,
    }
    return {name: value for name, value in facts.items() if value}
