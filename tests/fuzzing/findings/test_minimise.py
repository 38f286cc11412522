"""Minimised inputs are small and still show the bug."""

import pytest

from tests.support.running import run
from windlass_fuzz.findings.minimise import minimise


def smallest(data: bytes, *needed: bytes, tries: int = 2_000) -> tuple[bytes, int]:
    asked = 0

    async def still_fails(candidate: bytes) -> bool:
        nonlocal asked
        asked += 1
        return all(word in candidate for word in needed)

    return run(minimise(data, still_fails, tries)), asked


def test_only_the_lines_and_words_that_matter_stay() -> None:
    data = b"".join(b"(assert (> x%d %d))\n" % (n, n) for n in range(200))
    small, asked = smallest(data, b"x77", b"x150")
    assert small == b"x77x150"
    assert asked < 1_000


def test_terms_are_taken_out_of_formulas() -> None:
    data = b"(set-logic ALL)(assert (and (or a b) (= (div x 0) 1) (not c)))(check-sat)"

    async def still_fails(candidate: bytes) -> bool:
        balanced = candidate.count(b"(") == candidate.count(b")")
        return balanced and b"(div x 0)" in candidate and b"(check-sat)" in candidate

    assert run(minimise(data, still_fails)) == b"(div x 0)(check-sat)"


def test_binary_inputs_shrink_by_bytes() -> None:
    small, _ = smallest(bytes(range(256)), b"\x07\x08")
    assert small == b"\x07\x08"


@pytest.mark.parametrize("data", [b"", b"x"])
def test_what_is_small_already_stays(data: bytes) -> None:
    assert smallest(data, data)[0] == data


def test_the_number_of_tries_is_bounded() -> None:
    _, asked = smallest(b"word " * 500, b"word word word", tries=20)
    assert asked <= 20
