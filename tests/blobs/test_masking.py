"""Secrets do not get through, however the stream is cut."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.worker.attempt.secrets import Masker


def masked(secrets: list[str], *chunks: bytes) -> bytes:
    masker = Masker(secrets)
    return b"".join([*map(masker.feed, chunks), masker.flush()])


@pytest.mark.parametrize(
    ("secrets", "text", "expected"),
    [
        (["hunter2"], b"pw=hunter2;", b"pw=***;"),
        (["a"], b"banana", b"b***n***n***"),
        (["abc", "abcdef"], b"abcdef abc abcde", b"*** *** ***de"),
        (["abc", "bcd"], b"abcd", b"***"),
        (["aa"], b"aaaaa", b"***"),
        (["é"], "café".encode(), b"caf***"),
        ([""], b"nothing to hide", b"nothing to hide"),
        ([], b"nothing to hide", b"nothing to hide"),
        (["secret"], b"secre", b"secre"),
    ],
)
def test_secrets_are_masked(secrets: list[str], text: bytes, expected: bytes) -> None:
    assert masked(secrets, text) == expected


def test_what_cannot_be_part_of_a_secret_is_shown_at_once() -> None:
    masker = Masker(["secret"])
    assert masker.feed(b"no such thing") == b"no such thing"
    assert masker.feed(b" sec") == b" "
    assert masker.feed(b"ond") == b"second"


def test_an_endless_secret_holds_nothing_back() -> None:
    masker = Masker(["aa"])
    shown = [masker.feed(b"a" * 1_000) for _ in range(1_000)]
    assert b"".join([*shown, masker.flush()]) == b"***"
    assert len(masker._held) <= 1


@given(
    secrets=st.lists(st.text("ab", min_size=1, max_size=4), max_size=3),
    text=st.text("abc", max_size=40).map(str.encode),
    cuts=st.lists(st.integers(0, 40), max_size=6),
)
def test_cutting_the_stream_changes_nothing(
    secrets: list[str], text: bytes, cuts: list[int]
) -> None:
    bounds = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    chunks = [text[start:end] for start, end in pairwise(bounds)]
    whole = masked(secrets, text)
    assert masked(secrets, *chunks) == whole
    assert not any(secret.encode() in whole for secret in secrets)
