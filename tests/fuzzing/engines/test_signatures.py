"""Inputs that show the same bug get the same title; another bug gets another title."""

import pytest

from windlass_fuzz.engines.signature import (
    Signature,
    crashed,
    is_surely_same,
    key_of,
    may_be_same,
    says_out_of_memory,
    signal_of,
    signature_of,
    title_of,
)
from windlass_fuzz.processes.runner import ExitStatus

ABORTED = ExitStatus(-6, "exited", 10)

ASAN = """\
==20057==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x602000000054 at pc 0x5586
WRITE of size 1 at 0x602000000054 thread T0
    #0 0x5586959dc294 in smt::Parser::parse(unsigned char const*, unsigned long) /src/p.cc:5:119
    #1 0x5586959dd101 in run(int) /src/t.cc:6:73
    #2 0x5586959022a3 in fuzzer::Fuzzer::ExecuteCallback(unsigned char const*) (/x/t+0x432a3)

allocated by thread T0 here:
    #0 0x55869599ebae in malloc (/tmp/t+0xdfbae)
"""
TITLES = {
    ASAN: "AddressSanitizer: heap-buffer-overflow in smt::Parser::parse < run",
    "/b/src/x.cpp:12:7: runtime error: signed integer overflow: 2147483647 + 1":
        "x.cpp: signed integer overflow: N + N",
    "prog: /b/src/x.cpp:12: int f(int): Assertion `a < b' failed.":
        "assertion `a < b` in x.cpp f",
    "ASSERTION VIOLATION\nFile: ../src/ast/ast.cpp\nLine: 77\nn > 0\n":
        "assertion `n > N` in ast.cpp",
    "Fatal failure within void cvc5::f(int) at /b/src/s.cpp:9\nCheck failure\n\n k == 1\n":
        "fatal failure `k == N` in s.cpp cvc5::f",
    "terminate called after throwing an instance of 'std::domain_error'\n  what():  no 7 here":
        "uncaught std::domain_error: no N here",
    "deep\ninternal error 17 at 0xbeef in /tmp/a/b.cc": "SIGABRT: internal error N at * in b.cc",
    "": "SIGABRT",
}  # fmt: skip


@pytest.mark.parametrize("output", TITLES)
def test_a_title_says_kind_and_place(output: str) -> None:
    assert title_of(output, ABORTED) == TITLES[output]


def test_lines_and_addresses_do_not_tell_bugs_apart() -> None:
    moved = ASAN.replace("p.cc:5:119", "p.cc:99:1").replace("0x5586959dc294", "0x1234")
    assert key_of(title_of(moved, ABORTED)) == key_of(title_of(ASAN, ABORTED))
    other = ASAN.replace("smt::Parser::parse", "smt::Parser::skip")
    assert key_of(title_of(other, ABORTED)) != key_of(title_of(ASAN, ABORTED))


@pytest.mark.parametrize(
    ("code", "signal"), [(-11, 11), (139, 11), (1, None), (0, None), (200, None)]
)
def test_a_signal_is_known_also_through_a_shell(code: int, signal: int | None) -> None:
    assert signal_of(code) == signal
    assert crashed(ExitStatus(code, "exited", 1)) == (signal is not None)


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ("assertion `ok` in a.c parse", "assertion `ok` in b.c read", True),
        ("assertion `ok` in a.c parse", "assertion `fine` in a.c parse", True),
        ("assertion `ok` in a.c parse", "assertion `fine` in a.c solve", False),
        ("SIGSEGV in parse < run", "SIGABRT in parse < other", True),
        ("SIGSEGV in parse < run", "SIGSEGV in solve < other", False),
        ("AddressSanitizer: leak in a", "AddressSanitizer: leak in b", False),
        ("assertion `ok` in a.c parse", "SIGSEGV in solve", False),
        ("SIGSEGV", "SIGSEGV in parse", True),
        ("SIGSEGV: reading 7", "SIGSEGV: reading 9", True),
        ("exit code 4: wrong", "SIGSEGV in parse", False),
        ("uncaught E: text in f", "uncaught E: text in g", True),
    ],
)
def test_only_a_clear_difference_makes_a_failure_of_another_build_another_bug(
    before: str, now: str, same: bool
) -> None:
    assert may_be_same(Signature("crash", before), {now}, ()) is same


def test_failures_of_two_builds_that_share_a_function_may_be_one_bug() -> None:
    before = Signature("crash", "SIGSEGV in a < shared", ("a", "shared"))
    assert may_be_same(before, {"SIGABRT in b < shared"}, {"b", "shared"})
    assert not may_be_same(before, {"SIGABRT in b < c"}, {"b", "c"})


@pytest.mark.parametrize(
    ("before", "now", "same"),
    [
        ("SIGSEGV in a < shared", "SIGSEGV in b < shared", False),
        ("SIGSEGV in a < one", "SIGABRT in a < other", True),
        ("assertion `ok` in a.c parse", "assertion `ok` in b.c read", True),
        ("SIGSEGV", "SIGSEGV in a", False),
        ("SIGSEGV", "SIGSEGV", True),
    ],
)
def test_only_the_same_place_or_message_makes_two_failures_surely_one_bug(
    before: str, now: str, same: bool
) -> None:
    assert is_surely_same(Signature("crash", before, ("a", "shared")), {now}) is same


JSON = b'{"a": 9, "frame":[1,2],\x0b"x":\n"yy", "z": 3}'
MACRO = 'json: /a/j.c:82: check: Assertion `depth %d < 2 near "%s"\' failed.\n'


@pytest.mark.parametrize("quoted", ['9, "frame"', '[1,2],\x0b"x"', 'x":\n"yy", ', '"z": 3}', ""])
def test_an_assertion_may_quote_any_part_of_an_input(quoted: str) -> None:
    said = MACRO % (len(quoted), quoted)
    found = signature_of(said, ABORTED, errors=said, data=JSON)
    assert found.title == 'assertion `depth N < N near "*"` in j.c check'


@pytest.mark.parametrize(
    ("said", "title"),
    [
        ("error: expected ')' but got 'yy'", "SIGABRT: error: expected ')' but got '*'"),
        ("error: unexpected token 'x\":\n\"yy' here", "SIGABRT: error: unexpected token '*' here"),
        ("error: node 7fe0b8 and -3 at 1 -2 3 0", "SIGABRT: error: node N and N at N"),
        ('j: j.c:1: f: Assertion `a && "no"\' failed.', 'assertion `a && "no"` in j.c f'),
    ],
)
def test_quotes_of_other_text_and_words_stay(said: str, title: str) -> None:
    assert signature_of(said, ABORTED, errors=said, data=JSON).title == title


def test_words_of_the_input_do_not_speak_of_memory() -> None:
    assert says_out_of_memory("c read 'out of memory'\nstd::bad_alloc", b"out of memory")
    assert not says_out_of_memory("c read 'out of memory'", b"x: out of memory")
