"""Whatever a parser gets, it answers or refuses with its own error, in time that fits the input."""

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.parsers.catalog import ALL, BY_NAME
from tests.parsers.parser import Parser, try_input
from tests.support.forms import by_form

EXAMPLES = by_form(20, 1_000)
LONG_BYTES = by_form(16_384, 65_536)
PLACES = by_form(3, 40)  # of a seed that are repeated
ODD = ("\0", "\n", " ", "²", "-", "9" * 30, "1e999", "\u2028", "\ud800", "\U0001f600", "'", '"')


def _pieces(parser: Parser) -> st.SearchStrategy[bytes]:
    """Seeds that were cut, joined and changed, and anything else."""
    seeds = st.sampled_from(parser.seeds or (b"",))
    odd = st.sampled_from(ODD).map(lambda text: text.encode("utf-8", "surrogatepass"))
    part = st.builds(
        lambda seed, start, end: seed[start : start + end],
        seeds, st.integers(0, 60), st.integers(0, 60),
    )  # fmt: skip
    joined = st.lists(part | odd | st.binary(max_size=3), min_size=1, max_size=5).map(b"".join)
    changed = st.builds(
        lambda seed, at, put, cut: seed[:at] + put + seed[at + cut :],
        seeds, st.integers(0, 100), odd | st.binary(max_size=4), st.integers(0, 3),
    )  # fmt: skip
    return changed | joined | st.binary(max_size=30)


@pytest.mark.parametrize("parser", ALL, ids=lambda parser: parser.name)
def test_any_input_is_read_or_refused(parser: Parser) -> None:
    @settings(max_examples=EXAMPLES)
    @given(_pieces(parser))
    def check(data: bytes) -> None:
        try_input(parser, data)

    for seed in parser.seeds:
        try_input(parser, seed)
    check()


def _grown(parser: Parser) -> Iterator[bytes]:
    """Seeds in which one short part is repeated until they are as long as an input may be."""
    most = min(LONG_BYTES, parser.most)
    for seed in parser.seeds:
        step = max(1, len(seed) // PLACES)
        for place in range(0, len(seed), step):
            for width in (1, 3):
                part = seed[place : place + width]
                count = max(1, (most - len(seed)) // len(part))
                yield seed[:place] + part * count + seed[place + width :]


@pytest.mark.parametrize("parser", ALL, ids=lambda parser: parser.name)
def test_the_time_grows_no_faster_than_the_input(parser: Parser) -> None:
    for data in _grown(parser):
        try_input(parser, data)


def test_each_parser_has_a_name_of_its_own() -> None:
    assert len(BY_NAME) == len(ALL)
