"""What jobs and workers call themselves, say and log cannot act on an operator's terminal."""

import io
import json
import re
from contextlib import redirect_stdout

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.cli.output.tables import print_table
from windlass.cli.output.text import escape, escape_json, escape_line, escape_log

CLIPBOARD = "\x1b]52;c;cm0gLXJmIH4=\x07"
HARMLESS = re.compile(r"(\x1b\[[0-9;:]*m|[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f])*")

# Texts in which sequences of terminals are likely, and cut at any place.
HOSTILE = st.text(
    st.sampled_from("\x1b[]52;c?\x07\x08\r\n\t\x9b\x90mHJ01\u202eé\x00\x7f"), max_size=30
) | st.text(max_size=20)


def logged(*chunks: bytes) -> str:
    return "".join(escape_log(chunks))


@given(HOSTILE)
def test_no_text_moves_the_cursor_or_reaches_the_clipboard(text: str) -> None:
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", escape(text))
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", escape_line(text))


@given(st.recursive(HOSTILE, lambda inner: st.lists(inner, max_size=3)))
def test_json_means_the_same_and_holds_no_control_characters(value: object) -> None:
    shown = escape_json(json.dumps(value, ensure_ascii=False))
    assert json.loads(shown) == value
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)


@given(HOSTILE, st.integers(1, 7))
def test_a_log_keeps_nothing_but_colours_wherever_it_is_cut(text: str, size: int) -> None:
    data = text.encode()
    chunks = [data[n : n + size] for n in range(0, len(data), size)]
    shown = logged(*chunks)
    assert HARMLESS.fullmatch(shown), ascii(shown)
    assert shown == logged(data)


def test_a_log_shows_what_was_tried_and_keeps_its_colours() -> None:
    assert logged(b"\x1b[1;31mred\x1b[0m ok\r\n") == "\x1b[1;31mred\x1b[0m ok\r\n"
    assert logged(b"a\x1b]52;c;AAAA\x07b") == "a\\x1b]52;c;AAAA\\x07b"
    assert logged(b"\x1b", b"[2", b"J") == "\\x1b[2J"
    assert logged(b"caf\xc3", b"\xa9 \x9b \xc2\x9b31m") == "café \\x9b \\x9b31m"


@pytest.mark.parametrize("name", [r"x\[/]", "[/red]", "[bold]", "\\", CLIPBOARD, "a\nb"])
def test_a_table_shows_every_name_as_it_is(name: str) -> None:
    shown = io.StringIO()
    with redirect_stdout(shown):
        print_table(("id", "name", "state"), [(1, name, "completed")], "nothing")
    assert escape_line(name) in shown.getvalue()
    assert "\x1b]" not in shown.getvalue()
