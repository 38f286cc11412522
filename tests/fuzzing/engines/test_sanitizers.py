"""A sanitizer's report is a bug whatever the exit code is; stacks name bugs."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from tests.fuzzing.engines.test_engines import Bench
from tests.support.running import run
from windlass_fuzz.config.finding_settings import SignatureSettings
from windlass_fuzz.engines.engine import Verdict
from windlass_fuzz.engines.frames import Frame, clean_function, frames_in, own_functions
from windlass_fuzz.engines.sanitizers import (
    needs_address_space,
    report_before_limit,
    sanitizer_report,
    with_stacks,
)
from windlass_fuzz.engines.signature import Signature, signature_of, with_stack
from windlass_fuzz.processes.runner import ExitStatus

ASAN = """\
=================================================================
==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x602 at pc 0x55 bp 0x7f sp 0x7f
READ of size 1 at 0x602000000010 thread T0
    #0 0x4a1 in solver::Clause::weight() const /src/clause.cc:7:10
    #1 0x4b2 in solver::reduce(int) /src/reduce.cc:20
    #2 0x7f1 in __libc_start_main (/lib/x86_64-linux-gnu/libc.so.6+0x23fba)

freed by thread T0 here:
    #0 0x49 in free (/tmp/t+0xdf)
"""
LSAN = """\
==7==ERROR: LeakSanitizer: detected memory leaks

Direct leak of 100 byte(s) in 1 object(s) allocated from:
    #0 0x7f8 in __interceptor_malloc ../../../../src/libsanitizer/lsan/lsan_interceptors.cpp:75
    #1 0x562 in lose /src/l.c:2
    #2 0x563 in main /src/l.c:3
"""
UBSAN = "/src/add.c:3:9: runtime error: signed integer overflow: 2147483647 + 88\n"
MSAN = """\
==7==WARNING: MemorySanitizer: use-of-uninitialized-value
    #0 0x4a1 in pick /src/pick.c:7:10
"""
TSAN = """\
==================
WARNING: ThreadSanitizer: data race (pid=7)
  Write of size 4 at 0x55 by thread T1:
    #0 count /src/race.c:4:9 (race+0x12)
    #1 work /src/race.c:9 (race+0x34)
"""
MEMORY = "==7==ERROR: AddressSanitizer: requested allocation size 0xffff exceeds maximum\n"
FREED = "AddressSanitizer: heap-use-after-free"
REPORTS = {
    "asan": (ASAN, 1, "sanitizer", f"{FREED} in solver::Clause::weight < solver::reduce"),
    "lsan": (LSAN, 23, "leak", "LeakSanitizer: leak in lose"),
    "ubsan": (UBSAN, 0, "sanitizer", "add.c: signed integer overflow: N + N"),
    "msan": (MSAN, 77, "sanitizer", "MemorySanitizer: use-of-uninitialized-value in pick"),
    "tsan": (TSAN, 66, "sanitizer", "ThreadSanitizer: data race in count < work"),
}  # fmt: skip


@pytest.mark.parametrize("sanitizer", [True, False])
@pytest.mark.parametrize("name", REPORTS)
def test_a_report_is_a_bug_whatever_the_exit_code(
    tmp_path: Path, name: str, sanitizer: bool
) -> None:
    report, code, kind, title = REPORTS[name]
    bench = Bench(tmp_path)
    (bench.build / "report").write_text(report)
    bench.script("solver", f"cat {bench.build}/report >&2; exit {code}")
    engine = bench.engine(
        "command", argv=["{binaries}/solver", "{input}"], sanitizer=sanitizer, unsupported=[code]
    )
    verdict = run(engine.classify(bench.file("x")))
    assert (verdict.kind, verdict.failure, verdict.title) == ("bug", kind, title)


@pytest.mark.parametrize(
    ("engine", "options"),
    [("command", {"fine": [10]}), ("afl", {"argv": ["{binaries}/solver", "@@"]})],
)
def test_an_answer_that_reads_like_a_report_is_no_bug(
    tmp_path: Path, engine: str, options: dict[str, Any]
) -> None:
    """A program may print anything as its answer; a sanitizer writes to the error output."""
    bench = Bench(tmp_path)
    (bench.build / "report").write_text(ASAN)
    code = 10 if engine == "command" else 0
    bench.script("solver", f"cat {bench.build}/report; exit {code}")
    made = bench.engine(engine, **{"argv": ["{binaries}/solver", "{input}"], **options})
    assert run(made.classify(bench.file("x"))).kind == "fine"


@pytest.mark.parametrize("name", ["asan", "ubsan"])
def test_a_build_with_a_sanitizer_may_report_anywhere_but_not_repeat_its_input(
    tmp_path: Path, name: str
) -> None:
    bench = Bench(tmp_path)
    report, _, _, title = REPORTS[name]
    (bench.build / "report").write_text(report)
    bench.script("solver", f"cat {bench.build}/report; exit 0")
    argv = ["{binaries}/solver", "{input}"]
    engine = bench.engine("command", argv=argv, sanitizer=True)
    assert run(engine.classify(bench.file("x"))).title == title
    assert run(engine.classify(bench.file(f'(echo "{report}")'))).kind == "fine"


def test_a_report_that_a_script_sends_elsewhere_counts_if_the_program_failed(
    tmp_path: Path,
) -> None:
    bench = Bench(tmp_path)
    (bench.build / "report").write_text(ASAN)
    bench.script("solver", f"cat {bench.build}/report; exit 1")
    engine = bench.engine("command", argv=["{binaries}/solver", "{input}"])
    verdict = run(engine.classify(bench.file("x")))
    assert (verdict.kind, verdict.title) == ("bug", REPORTS["asan"][3])


@pytest.mark.parametrize(
    ("name", "options"),
    [("command", {"argv": ["{binaries}/solver", "{input}"]}), ("libfuzzer", {"binary": "solver"})],
)
def test_the_error_output_names_a_bug_before_an_answer_that_reads_like_a_report(
    tmp_path: Path, name: str, options: dict[str, Any]
) -> None:
    bench = Bench(tmp_path)
    (bench.build / "answer").write_text(ASAN)
    (bench.build / "report").write_text(MSAN)
    bench.script("solver", f"cat {bench.build}/answer; cat {bench.build}/report >&2; exit 77")
    engine = bench.engine(name, **options)
    assert run(engine.classify(bench.file("x"))).title == REPORTS["msan"][3]


def test_a_sanitizer_that_is_out_of_memory_reports_no_bug(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    bench.script("solver", f"echo '{MEMORY}' >&2; exit 1")
    engine = bench.engine("command", argv=["{binaries}/solver", "{input}"])
    assert run(engine.classify(bench.file("x"))).kind == "memory"


def test_a_sanitizer_that_cannot_start_within_the_limit_gets_no_limit(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    failed = "ReserveShadowMemoryRange failed while trying to map"
    own = bench.memory // 1024
    bench.script("solver", f"[ $(ulimit -v) != {own} ] || {{ echo {failed}; exit 1; }}")
    engine = bench.engine("command", argv=["{binaries}/solver", "{input}"])
    assert run(engine.classify(bench.file("x"))).kind == "fine"


def test_the_beginning_and_the_end_of_a_long_report_are_kept(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    (bench.build / "report").write_text(ASAN + "noise\n" * 100_000 + "SUMMARY: the end\n")
    bench.script("solver", f"cat {bench.build}/report >&2; exit 1")
    engine = bench.engine("command", argv=["{binaries}/solver", "{input}"])
    verdict = run(engine.classify(bench.file("x")))
    assert verdict.title == REPORTS["asan"][3]
    assert "SUMMARY: the end" in verdict.output


@pytest.mark.parametrize(
    ("name", "clean"),
    [
        ("parse(char const*, int)", "parse"),
        ("(anonymous namespace)::Solver::step(int)", "{anonymous}::Solver::step"),
        ("void visit<std::vector<int, std::allocator<int>>>(int)", "visit"),
        ("Less::operator()(int, int) const", "Less::operator{}"),
        ("reduce.constprop.0", "reduce"),
        ("scan.part.3.cold", "scan"),
        ("name[abi:cxx11](int)", "name"),
        ("core::run::h0123456789abcdef", "core::run"),
        ("run()::{lambda(int)#2}::operator()(int) const", "run"),
    ],
)
def test_functions_lose_what_compilers_add(name: str, clean: str) -> None:
    assert clean_function(name) == clean


def test_frames_of_runtime_library_and_inlined_functions_are_skipped() -> None:
    stack = [
        Frame("__interceptor_memcpy", "asan.cpp"),
        Frame("tiny", "a.c", inlined=True),
        Frame("own", "a.c"),
        Frame("qsort_r", "/lib/x86_64-linux-gnu/libc.so.6"),
        Frame("std::sort<int>", "/usr/include/c++/12/algo.h"),
        Frame("checked_read", "support/log.c"),
        Frame("outer", "a.c"),
        Frame("main", "a.c"),
    ]
    assert own_functions(stack, SignatureSettings(inlined=False)) == (
        "own",
        "checked_read",
        "outer",
    )
    rules = SignatureSettings(ignore=("^checked_",), inlined=True, frames=2)
    assert own_functions(stack, rules) == ("tiny", "own")
    rules = SignatureSettings(ignore=("support/",))
    assert own_functions(stack, rules) == ("tiny", "own", "outer")
    assert own_functions(stack[1:2], SignatureSettings()) == ("tiny",), "better than nothing"


def test_inlined_functions_share_the_address_of_the_next_frame() -> None:
    report = "#0 0x12 in tiny /a.c:1:2\n#1 0x12 in own /a.c:9\n#2 0x34 in outer /a.c:20\n"
    assert [frame.inlined for frame in frames_in(report)] == [True, False, False]


def test_the_stack_replaces_output_but_no_message() -> None:
    aborted = ExitStatus(-6, "exited", 1)
    loud = signature_of("c 17 conflicts\n", aborted, errors="")
    assert loud.title == "SIGABRT"
    named = with_stack(loud, ("f", "g"))
    assert named == Signature("crash", "SIGABRT in f < g", ("f", "g"), "stack")
    said = signature_of("x.c:3: int f(int): Assertion `a' failed.", aborted)
    assert with_stack(said, ("g",)) == said


def test_the_solvers_own_rules_come_first() -> None:
    rules = SignatureSettings(messages=(r"^bug (\w+ \d+)",), blank=("tmp[a-z]+",))
    found = signature_of("bug alpha 7\n" + ASAN, ExitStatus(1, "exited", 1), rules)
    assert (found.title, found.kind) == ("alpha N", "wrong_answer")
    found = signature_of("failed in tmpabc", ExitStatus(-6, "exited", 1), rules)
    assert found.title == "SIGABRT: failed in *"


# The first four wait for each other and for their limit, and give up as a sanitizer does.
STARVED = """
[ "$(ls {there} | wc -l)" -ge 4 ] && cat {report} && exit 1
touch {there}/$$
while [ "$(ls {there} | wc -l)" -lt 4 ] || [ "$(ulimit -v)" = unlimited ]; do :; done
echo '==7==ERROR: AddressSanitizer: heap-use-after-free on address 0x602 at pc 0x55' >&2
echo '==7==ERROR: AddressSanitizer failed to allocate 0x1000 (4096) bytes' >&2
exit 1
"""


def test_inputs_that_run_at_once_within_a_limit_all_get_their_whole_report(tmp_path: Path) -> None:
    bench = Bench(tmp_path)
    there, report = tmp_path / "there", tmp_path / "report"
    there.mkdir()
    report.write_text(ASAN)
    bench.script("target", STARVED.format(there=there, report=report))
    engine = bench.engine("command", argv=["{binaries}/target", "{input}"])
    path = bench.file("x")

    async def all_at_once() -> list[Verdict]:
        return await asyncio.gather(*(engine.classify(path) for _ in range(4)))

    titles = {verdict.title for verdict in run(all_at_once())}
    assert titles == {f"{FREED} in solver::Clause::weight < solver::reduce"}


@pytest.mark.parametrize(
    "said",
    [
        "=====\nERROR: Failed to mmap\n",
        "==7==ERROR: AddressSanitizer failed to allocate 0xdfff0001000 bytes",
        "==7==FATAL: AddressSanitizer: internal allocator is out of memory",
        "==7==ERROR: Failed to protect the shadow gap. AddressSanitizer cannot proceed correctly.",
    ],
)
def test_a_sanitizer_that_may_not_map_enough_is_known_whenever_the_limit_reached_it(
    said: str,
) -> None:
    assert needs_address_space(said)
    assert not needs_address_space("ERROR: AddressSanitizer: heap-buffer-overflow on address 0x1")


def test_a_report_before_a_limit_counts_and_what_libfuzzer_says_of_the_limit_does_not() -> None:
    late = "==7== ERROR: libFuzzer: timeout after 2 seconds\n    #0 0x1 in slow /src/s.c:1\n"
    assert report_before_limit(late) is None
    found = report_before_limit(UBSAN + late)
    assert found is not None
    assert (found.file, found.kind) == ("add.c", "sanitizer")
    assert report_before_limit(ASAN + late) is not None


def test_a_folder_with_a_space_hides_no_report() -> None:
    found = sanitizer_report(UBSAN.replace("/src/", "/my work/src/"))
    assert found is not None
    assert found.file == "add.c"


def test_what_ends_a_program_after_a_report_names_it() -> None:
    segv, abort = ExitStatus(-11, "exited", 1), ExitStatus(-6, "exited", 1)
    failed = "j: j.c:1: f: Assertion `ok' failed.\n"
    assert signature_of(UBSAN, segv).kind == "crash"
    assert signature_of(UBSAN + failed, abort).title == "assertion `ok` in j.c f"
    assert signature_of(UBSAN, abort).kind == "sanitizer"
    assert signature_of(UBSAN, ExitStatus(1, "exited", 1)).kind == "sanitizer"


def test_undefined_behaviour_says_where_unless_the_solver_file_says_otherwise() -> None:
    assert with_stacks({})["UBSAN_OPTIONS"] == "print_stacktrace=1"
    given = with_stacks({"UBSAN_OPTIONS": "print_stacktrace=0"})["UBSAN_OPTIONS"]
    assert given == "print_stacktrace=1:print_stacktrace=0"  # the last one counts


def test_how_deep_an_input_nests_does_not_change_its_functions() -> None:
    rules = SignatureSettings()

    def own(*names: str, overflow: bool | None = None) -> tuple[str, ...]:
        return own_functions([Frame(name) for name in names], rules, overflow=overflow)

    flat = own("leaf", "value", "parse")
    assert flat == ("leaf", "value", "parse")
    assert own("leaf", "value", "array", "value", "object", "value", "parse") == flat
    assert own("leaf", *["value", "array"] * 40, "value", "parse") == flat
    assert own("leaf", *["value", "array"] * 40, overflow=True) == ("array", "value")
    assert own(*["array", "value"] * 150) == ("array", "value")
