"""Two runs side by side: jobs by name, and the largest differences first."""

from windlass.domain.graphs.compare import ComparedSide, Side, compare


def _side(name: str, run: int | None = 1_000, wait: int | None = 50, **fields: int) -> Side:
    state = str(fields.get("state", 8))
    shown = ComparedSide(job=fields.get("job", 1), state=state, run_ms=run, wait_ms=wait)
    return Side(name, fields.get("args", 0), shown)


def test_the_largest_differences_come_first() -> None:
    a = [_side("slow", 1_000), _side("slower", 1_000), _side("bad"), _side("gone"), _side("same")]
    b = [_side("slow", 2_000), _side("slower", 9_000), _side("bad", state=9), _side("same", 1_050),
         _side("new")]  # fmt: skip
    found = compare(a, b)
    assert [one.name for one in found.differences] == ["bad", "gone", "new", "slower", "slow"]
    assert [one.run_ms for one in found.differences] == [None, None, None, 8_000, 1_000]
    assert (found.same, found.only_a, found.only_b) == (1, 1, 1)


def test_other_arguments_and_a_longer_wait_are_differences() -> None:
    found = compare([_side("x", args=1), _side("y")], [_side("x", args=2), _side("y", wait=900)])
    assert [(one.name, one.arguments_differ, one.wait_ms) for one in found.differences] == [
        ("y", False, 850), ("x", True, None),
    ]  # fmt: skip


def test_jobs_of_one_name_are_matched_in_their_order() -> None:
    found = compare(
        [_side("x", 1), _side("x", 5_000)], [_side("x", 1), _side("x", None), _side("x")]
    )
    assert [(one.a is None, one.run_ms) for one in found.differences] == [(True, None)]
    assert found.same == 2
