"""Jobs are searched many at once, and found as if each were searched alone."""

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from windlass.domain.rows.views import JobFilter
from windlass.domain.values.names import compile_pattern
from windlass.store.job_filters import TOGETHER, JobText, found_in

LINES = st.lists(st.text("ab1 -", max_size=4), min_size=1, max_size=3)
PATTERNS = st.sampled_from([
    "a", "^a", "b$", "^$", "a.b", "[^a]b", r"\ba", r"a\b", r"\Ba", r"\Aa", r"b\z", "(?s)a.b",
    "(?-m)^b", "(a|b)1", r"\s", "a[^x]*1", "^[^a]*$", "",
])  # fmt: skip


def job(number: int, lines: list[str]) -> JobText:
    spec = msgspec.json.encode({"task": "t", "name": lines[0], "args": {"argv": ["x"]}})
    message, reason = [*lines[1:], None, None][:2]
    return JobText(number, 0, None, 0, message, reason, spec)


def alone(row: JobText, pattern: str) -> bool:
    spec = msgspec.json.decode(row.spec)
    parts = (spec["name"], spec["task"], "x", row.message, row.reason)
    return compile_pattern(pattern)("\n".join(part for part in parts if part))


@example([["b"], ["a"]], r"\Aa")
@example([["a", "b"], ["a"]], r"b\z")
@example([["b"], ["a"]], "(?-m)^a")
@given(st.lists(LINES, max_size=2 * TOGETHER + 1), PATTERNS)
def test_a_pattern_is_found_as_in_each_job_alone(jobs: list[list[str]], pattern: str) -> None:
    rows = [job(number, lines) for number, lines in enumerate(jobs, 1)]
    expected = [row.job for row in rows if alone(row, pattern)]
    assert found_in(JobFilter(pattern=pattern), rows) == expected
