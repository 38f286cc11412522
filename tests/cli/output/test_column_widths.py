"""Tables fit the terminal: which columns are left out, and how wide the others are."""

from rich.console import Console

from windlass.cli.output.job_table import USUAL, layout_of, read_columns
from windlass.cli.output.tables import Column, Layout, fit, make_table

STATE = Column("state", 9, 9, narrows=False)
COMMAND = Column("command", 48, 20)
REASON = Column("reason", 90, 20)
PRIORITY = Column("priority", 8, 8, narrows=False)


def test_columns_that_fit_are_as_wide_as_their_values() -> None:
    assert fit([STATE, COMMAND], 80) == {"state": 9, "command": 48}


def test_the_widest_columns_are_narrowed_first_and_alike() -> None:
    assert fit([STATE, COMMAND, REASON], 80) == {"state": 9, "command": 33, "reason": 34}


def test_a_huge_value_is_narrowed_in_few_steps() -> None:
    huge = Column("args", 10**9, 12)
    assert fit([STATE, huge, COMMAND], 80) == {"state": 9, "args": 33, "command": 34}
    assert fit([huge], 10_000) == {"args": 10_000}


def test_a_column_is_left_out_only_if_the_others_cannot_be_narrowed() -> None:
    columns = [STATE, COMMAND, REASON, PRIORITY]
    assert fit(columns, 63, ["priority"]).keys() == {"state", "command", "reason", "priority"}
    assert fit(columns, 62, ["priority"]).keys() == {"state", "command", "reason"}
    assert fit(columns, 40, ["priority", "reason"]) == {"state": 9, "command": 29}


def test_columns_that_nobody_may_leave_out_are_narrowed_further() -> None:
    assert fit([STATE, COMMAND, REASON], 25) == {"state": 9, "command": 6, "reason": 6}
    assert fit([STATE, COMMAND, REASON], 9) == {"state": 9, "command": 4, "reason": 4}


ROW = {
    "id": 1234, "state": "completed", "name": "nightly-build-of-everything",
    "command": "make -j8 all install check", "queue": "batch", "duration": "3 min 20 s",
    "age": "12 min", "priority": 0, "attempt": 1, "worker": "builder-eu-west-17",
    "reason": "exit code 3: execution failures are not retried",
}  # fmt: skip


def lines(width: int, columns: list[str] | None = None) -> list[str]:
    chosen = USUAL if columns is None else read_columns(",".join(columns))
    console = Console(width=width, force_terminal=False)
    with console.capture() as shown:
        rows = [[ROW.get(name) for name in chosen]]
        console.print(make_table(chosen, rows, width, layout_of(chosen)))
    return shown.get().splitlines()


def test_a_job_is_one_readable_line_on_every_terminal() -> None:
    for width in (40, 60, 80, 120, 200):
        header, *rows = lines(width)
        assert len(rows) == 1, rows
        names = header.split()
        assert [name for name in USUAL if name in names] == names  # none is broken over lines
        assert {"id", "state", "command", "age"} <= set(names)
        assert rows[0].split()[:2] == ["1234", "completed"]
    assert lines(40)[0].split() == ["id", "state", "command", "age"]
    assert lines(60)[0].split() == ["id", "state", "command", "queue", "duration", "age"]
    assert "priority" not in lines(120)[0]
    assert str(ROW["reason"]) in lines(200)[1]


def test_columns_that_were_chosen_are_all_shown() -> None:
    header, row = lines(60, ["id", "priority", "attempt", "worker", "reason", "queue"])
    assert header.split() == ["id", "priority", "attempt", "worker", "reason", "queue"]
    assert "…" in row


def test_values_are_folded_unless_their_column_is_cut() -> None:
    console = Console(width=20, force_terminal=False)
    with console.capture() as shown:
        rows = [(1, "one two three four five six")]
        console.print(make_table(("id", "reason"), rows, 20, Layout(cut=())))
    assert shown.get().split() == ["id", "reason", "1", *rows[0][1].split()]
