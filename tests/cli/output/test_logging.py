"""The log of a server: what jobs and callers say in it stays one harmless line."""

import io
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import pytest
import structlog

from windlass.cli.output.logging import configure_logging

FORGED = "no\x1b]52;c;cm0gLXJmIH4=\x07\r\n\x9b2J\x7f\u202e2026-01-01 [info ] [FSM] Job 9: DONE"
CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e]")


@contextmanager
def _logged(*, json: bool) -> Iterator[io.StringIO]:
    with patch.object(sys, "stderr", io.StringIO()) as shown:
        configure_logging(json=json)
        yield shown


@pytest.mark.parametrize("form", ["plain", "json"])
def test_a_reason_with_escapes_and_newlines_stays_one_harmless_line(form: str) -> None:
    with _logged(json=form == "json") as shown:
        structlog.get_logger().info(FORGED, reason=FORGED, names=[FORGED], facts={"job": FORGED})
    text = shown.getvalue()
    assert text.count("\n") == 1
    assert not CONTROLS.search(text), ascii(text)
    if form == "json":
        entry = json.loads(text)
        assert (entry["event"], entry["reason"], entry["job"]) == (FORGED, FORGED, FORGED)
    else:
        assert "\\x1b]52;c;" in text


def test_a_traceback_keeps_its_lines_and_no_escapes() -> None:
    with _logged(json=False) as shown:
        try:
            raise ValueError(FORGED)
        except ValueError as error:
            structlog.get_logger().error("unhandled", exc_info=error)
    lines = shown.getvalue().splitlines()
    assert any(line.startswith("Traceback") for line in lines)
    assert not CONTROLS.search(shown.getvalue()), ascii(shown.getvalue())


def test_a_line_about_an_event_has_the_time_of_the_event() -> None:
    happened = "2026-01-02T12:34:56.789Z"
    with _logged(json=False) as shown:
        structlog.get_logger().info("[FSM] Job 1: NEW → QUEUED", facts={"job": 1, "at": happened})
        structlog.get_logger().info("a line about nothing")
    about, other = shown.getvalue().splitlines()
    assert about.startswith(happened)
    assert not other.startswith(happened)
