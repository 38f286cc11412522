"""Durations and sizes as people write them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.values.errors import InvalidInput, shorten
from windlass.domain.values.quantities import (
    DURATION_LIMIT_MS,
    SIZE_LIMIT,
    counted,
    format_duration,
    format_size,
    parse_duration_ms,
    parse_size,
    readable_duration,
    readable_limit,
    readable_size,
)

NO_DURATIONS: list[object] = [
    *("", " ", "s", "-5s", "5x", "1h 2m", "30s2m", "1e3", "0.0001s", "٣s", "9" * 5000),
    -1,
    -0.5,
    float("nan"),
    float("inf"),
    True,
    None,
    [],
    "101000d",
    10**20,
    10**5000,
]


@pytest.mark.parametrize(
    ("value", "ms"),
    [
        ("90", 90_000),
        ("90s", 90_000),
        ("15m", 900_000),
        ("6h", 21_600_000),
        ("500ms", 500),
        ("2d", 172_800_000),
        ("1w", 604_800_000),
        ("1w2d", 777_600_000),
        ("2m30s", 150_000),
        ("1h2m", 3_720_000),
        (" 1H ", 3_600_000),
        ("1.5s", 1_500),
        ("0.5h", 1_800_000),
        ("0", 0),
        (90, 90_000),
        (0, 0),
        (0.25, 250),
    ],
)
def test_durations_are_read(value: object, ms: int) -> None:
    assert parse_duration_ms(value) == ms


@pytest.mark.parametrize(
    "value",
    NO_DURATIONS,
    ids=shorten,
)
def test_other_durations_are_refused_by_the_name_of_their_field(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_duration_ms(value, field="timeout")
    assert caught.value.field == "timeout"


def test_the_longest_duration() -> None:
    assert parse_duration_ms("36525d") == DURATION_LIMIT_MS
    with pytest.raises(InvalidInput, match="at most 876600h"):
        parse_duration_ms(1.7e308)  # a thousand times that is no number
    with pytest.raises(InvalidInput, match="expected duration to be at most 876600h, got 36526d"):
        parse_duration_ms("36526d")


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (150_000, "2m30s"),
        (120_000, "2m"),
        (3_720_000, "1h2m"),
        (3_601_000, "1h1s"),
        (45_000, "45s"),
        (500, "500ms"),
        (1_500, "1.5s"),
        (61_050, "1m1.05s"),
        (60_500, "1m0.5s"),
        (172_800_000, "48h"),
        (0, "0s"),
        (-90_000, "-1m30s"),
    ],
)
def test_durations_are_written_as_in_the_seeds_log_lines(ms: int, text: str) -> None:
    assert format_duration(ms) == text


@given(st.integers(0, DURATION_LIMIT_MS))
def test_a_written_duration_is_read_again(ms: int) -> None:
    assert parse_duration_ms(format_duration(ms)) == ms


@pytest.mark.parametrize(
    ("value", "size"),
    [
        ("512MiB", 512 * 1024**2),
        ("4GiB", 4 * 1024**3),
        ("1GB", 10**9),
        ("1.5 gib", 3 * 1024**3 // 2),
        ("10kb", 10_000),
        ("100B", 100),
        ("1.7KiB", 1740),
        ("1024", 1024),
        (1024, 1024),
        (0, 0),
    ],
)
def test_sizes_are_read(value: object, size: int) -> None:
    assert parse_size(value) == size


@pytest.mark.parametrize(
    "value",
    ["", "GiB", "-1GiB", "4G", "1 XB", "9" * 5000, "9000000PiB", -1, 1.5, True, None, 2**63],
    ids=shorten,
)
def test_other_sizes_are_refused_by_the_name_of_their_field(value: object) -> None:
    with pytest.raises(InvalidInput) as caught:
        parse_size(value, field="memory")
    assert caught.value.field == "memory"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (4 * 1024**3, "4GiB"),
        (4000 * 1024**3, "4000GiB"),
        (1500 * 1024**2, "1500MiB"),
        (9999 * 10**6, "9999MB"),
        (512 * 1024**2, "512MiB"),
        (3 * 1024**3 // 2, "1.5GiB"),
        (10**9, "1GB"),
        (8_123_456_789, "7.6GiB"),
        (100, "100B"),
        (0, "0B"),
        (-1024, "-1KiB"),
    ],
)
def test_sizes_are_written_in_the_unit_that_fits(size: int, text: str) -> None:
    assert format_size(size) == text


@given(st.integers(1, 1023), st.sampled_from(["B", "KiB", "MiB", "GiB", "TiB"]))
def test_a_whole_number_of_a_binary_unit_is_kept(number: int, unit: str) -> None:
    text = f"{number}{unit}"
    assert format_size(parse_size(text)) == text


@given(st.integers(0, SIZE_LIMIT))
def test_a_written_size_is_off_by_rounding_only(size: int) -> None:
    assert abs(parse_size(format_size(size)) - size) <= size * 0.06


def test_things_are_counted_in_words() -> None:
    assert [counted(n, "job") for n in (0, 1, 2, 1_200)] == [
        "0 jobs",
        "1 job",
        "2 jobs",
        "1,200 jobs",
    ]


@pytest.mark.parametrize(
    ("ms", "text"),
    [
        (0, "0 s"),
        (340, "340 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (1_450, "1.5 s"),
        (9_949, "9.9 s"),
        (9_950, "10 s"),
        (59_499, "59 s"),
        (59_500, "1 min"),
        (60_700, "1 min 1 s"),
        (200_000, "3 min 20 s"),
        (3_599_500, "1 h"),
        (7_500_000, "2 h 5 min"),
        (86_370_000, "1 d"),
        (100 * 3_600_000, "4 d 4 h"),
        (-1_500, "−1.5 s"),
    ],
)
def test_durations_as_people_read_them(ms: int, text: str) -> None:
    assert readable_duration(ms) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (1_023, "1023 B"),
        (1_024, "1 KiB"),
        (1_024 * 1_024 - 1, "1 MiB"),
        (11_639_194, "11.1 MiB"),
        (102_297, "99.9 KiB"),
        (102_399, "100 KiB"),
        (8 * 1024**4, "8 TiB"),
        (SIZE_LIMIT, "4096 PiB"),
        (-512, "−512 B"),
    ],
)
def test_sizes_as_people_read_them(size: int, text: str) -> None:
    assert readable_size(size) == text


def test_a_size_that_was_set_is_shown_in_its_own_unit() -> None:
    assert [readable_limit(parse_size(size)) for size in ("10MB", "512MiB", "1.5GiB")] == [
        "10 MB",
        "512 MiB",
        "1.5 GiB",
    ]
