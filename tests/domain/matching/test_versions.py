"""Versions of tools are compared by their dotted numbers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.matching.clauses import parse_specifier, parse_version, satisfies


@pytest.mark.parametrize(
    ("text", "version"),
    [
        ("6.1.1", (6, 1, 1)),
        ("n6.1", (6, 1)),
        ("v20.11.0", (20, 11, 0)),
        ("7.0.2-static https://johnvansickle.com", (7, 0, 2)),
        ("1:2.30-4ubuntu2", (2, 30)),
        ("3", (3,)),
    ],
)
def test_a_version_is_read_from_what_tools_say(text: str, version: tuple[int, ...]) -> None:
    assert parse_version(text) == version


@pytest.mark.parametrize("text", ["", "N-109-gabcdef", "unknown", "git", "9" * 5000])
def test_what_names_no_version_has_none(text: str) -> None:
    assert parse_version(text) is None
    assert not satisfies(text, ">=0")


@pytest.mark.parametrize(
    ("version", "specifier", "met"),
    [
        ("6.1", ">=5,<7", True),
        ("7.0", ">=5,<7", False),
        ("4.4.2", ">=5,<7", False),
        ("5", ">=5", True),
        ("5", ">5", False),
        ("5.0.1", ">5", True),
        ("6.0", "<=6", True),
        ("6.9.3", "6.*", True),
        ("6", "6.*", True),
        ("60.1", "6.*", False),
        ("7", "6.*", False),
        ("6.1", "==6.1.*", True),
        ("6.1", "!=6.*", False),
        ("7.1", "!=6.*", True),
        ("6.0", "6", True),
        ("6.1", "==6", False),
        ("6.1", "!=6", True),
        ("10.0", ">=9.9", True),
    ],
)
def test_a_specifier_is_met_or_not(version: str, specifier: str, met: bool) -> None:
    assert satisfies(version, specifier) is met


@pytest.mark.parametrize("text", ["", ",", "latest", ">=", ">=5,", ">=6.*", "=>5", "5.x", "~=5"])
def test_a_bad_specifier_is_none(text: str) -> None:
    assert parse_specifier(text) is None
    assert not satisfies("5", text)


versions = st.lists(st.integers(0, 20), min_size=1, max_size=4).map(
    lambda numbers: ".".join(map(str, numbers))
)


@given(versions, versions)
def test_the_comparisons_agree_with_each_other(have: str, wanted: str) -> None:
    assert satisfies(have, f"<{wanted}") is not satisfies(have, f">={wanted}")
    assert satisfies(have, f">{wanted}") is not satisfies(have, f"<={wanted}")
    assert satisfies(have, f"=={wanted}") is not satisfies(have, f"!={wanted}")
    assert satisfies(have, f"=={wanted}") is satisfies(have, f">={wanted},<={wanted}")
    assert satisfies(f"{wanted}.{have}", f"{wanted}.*")
