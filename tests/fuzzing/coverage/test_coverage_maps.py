"""The coverage map: correct with real compilers, and still usable after the code has changed."""

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.support.debian import missing_reason
from tests.support.running import run
from windlass.clock import RealClock
from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.coverage.changes import changed_functions, hunks_of
from windlass_fuzz.coverage.coverage_map import (
    ChangedFunction,
    CoverageMap,
    Function,
    decode,
    encode,
    same_name,
)
from windlass_fuzz.coverage.functions import functions_in
from windlass_fuzz.coverage.mapper import MappedTest, Mapper
from windlass_fuzz.coverage.tools import CoverageBuild
from windlass_fuzz.processes.runner import Limits
from windlass_fuzz.roles.coverage import parse_shard
from windlass_fuzz.roles.seed_selection import select_tests

COMMIT = "c" * 40
SOURCE = """\
#include <string>
#include <fstream>
namespace smt {
class Parser {
 public:
  int parse(const std::string& text) { return text.size() > 3 ? longer(text) : shorter(); }
 private:
  int longer(const std::string& text) {
    return text[0];
  }
  int shorter() { return 0; }
};
static int unused(int x) { return x; }
}
int main(int count, char** words) {
  std::ifstream file(words[count - 1]);
  std::string text;
  file >> text;
  return smt::Parser().parse(text) == 1 ? smt::unused(1) : 0;
}
"""
COMPILERS = {
    "g++": ["--coverage"],
    "clang": ["-lstdc++", "-fprofile-instr-generate", "-fcoverage-mapping"],
}


def names(found: CoverageMap) -> dict[str, list[str]]:
    """Returns the last part of the names of the solver's own functions."""
    return {
        function.signature.partition("(")[0].split("::")[-1]: sorted(tests)
        for function, tests in found.functions.items()
    }


@pytest.mark.parametrize("compiler", COMPILERS)
def test_tests_are_mapped_one_by_one(tmp_path: Path, compiler: str) -> None:
    if shutil.which(compiler) is None:
        pytest.skip(missing_reason(compiler) or f"no {compiler} here")
    made = tmp_path / "made"
    (made / "src").mkdir(parents=True)
    (made / "src" / "s.cpp").write_text(SOURCE)
    flags = COMPILERS[compiler]
    command = [compiler, "-c", "src/s.cpp", "-o", "s.o", *flags[-2:]]
    subprocess.run(command, cwd=made, check=True, capture_output=True)
    subprocess.run([compiler, "s.o", "-o", "s", *flags], cwd=made, check=True)
    moved = tmp_path / "elsewhere"  # a build is used on other machines than its own
    made.rename(moved)
    tests = []
    for name, text in {"long": "abcdef", "short": "ab"}.items():
        (tmp_path / name).write_text(text)
        tests.append(MappedTest(name, [str(moved / "s"), str(tmp_path / name)]))
    build = CoverageBuild(moved, made, "s")
    mapper = Mapper(build, tmp_path / "mapping", RealClock(), Limits(60_000))
    found = run(mapper.run_all(COMMIT, tests, 2))
    assert names(found) == {
        "main": ["long", "short"],
        "parse": ["long", "short"],
        "longer": ["long"],
        "shorter": ["short"],
    }
    lines = {f.signature.partition("(")[0]: f.line for f in found.functions}
    assert (lines["smt::Parser::longer"], {f.path for f in found.functions}) == (8, {"src/s.cpp"})


def test_a_test_without_coverage_is_reported_and_the_others_are_mapped(tmp_path: Path) -> None:
    said: list[str] = []
    build = CoverageBuild(tmp_path, tmp_path, "s")
    mapper = Mapper(
        build, tmp_path / "m", RealClock(), Limits(60_000), lambda _, trouble: said.append(trouble)
    )
    found = run(mapper.run_all(COMMIT, [MappedTest("t", ["false"])], 1))
    assert (dict(found.functions), said) == (
        {}, ["t: wrote no coverage; it exited with code 1"],
    )  # fmt: skip


def test_no_test_starts_after_the_deadline(tmp_path: Path) -> None:
    said: list[int] = []
    clock = RealClock()
    build = CoverageBuild(tmp_path, tmp_path, "s")
    mapper = Mapper(
        build, tmp_path / "m", clock, Limits(60_000), lambda done, _: said.append(done),
        deadline_ms=clock.now_ms() + 3_600_000,
    )  # fmt: skip
    run(mapper.run_all(COMMIT, [MappedTest("t", ["true"])], 1))
    mapper.deadline_ms = clock.now_ms()
    run(mapper.run_all(COMMIT, [MappedTest("t", ["true"])], 1))
    assert said == [1]


def a_map(**functions: set[str]) -> CoverageMap:
    """Returns a map of functions in a.cpp, ten lines each, in the given order."""
    places = enumerate(functions.items())
    return CoverageMap(
        COMMIT,
        {
            Function("a.cpp", f"ns::{name}(int)", n * 10 + 1): frozenset(tests)
            for n, (name, tests) in places
        },
    )


def test_the_rarest_tests_come_first() -> None:
    found = a_map(common={"a", "b", "c", "d"}, rare={"c"}, other={"e"})
    changed = [ChangedFunction("a.cpp", "common", 1, 9), ChangedFunction("a.cpp", "rare", 11, 19)]
    assert found.tests_reaching(changed) == ["c", "a", "b", "d"]


def test_functions_are_found_where_they_have_moved_to() -> None:
    found = a_map(first={"a"}, second={"b"})
    assert found.tests_reaching([ChangedFunction("a.cpp", "second", 500, 510)]) == ["b"], (
        "moved lines"
    )
    assert found.tests_reaching([ChangedFunction("b.cpp", "ns::second", 1, 9)]) == ["b"], (
        "moved to another file"
    )
    assert found.tests_reaching([ChangedFunction("a.cpp", "renamed", 12, 15)]) == ["b"], (
        "renamed: by its lines"
    )
    assert found.tests_reaching([ChangedFunction("c.cpp", "new", 1, 9)]) == []


def test_the_same_name_in_another_file_is_another_function() -> None:
    both = {Function(f"{file}.cpp", "f(int)", 1): frozenset({file}) for file in ("a", "b")}
    assert CoverageMap(COMMIT, both).tests_reaching([ChangedFunction("b.cpp", "f", 7, 9)]) == ["b"]


def test_all_tests_are_taken_when_none_is_mapped() -> None:
    tests = {"t/a": Path("a"), "t/b": Path("b")}
    found = a_map(first={"t/b", "t/gone"})
    change = [ChangedFunction("a.cpp", "first", 1, 2)]
    assert select_tests(tests, found, change).tests == [Path("b")]
    assert select_tests(tests, found, [ChangedFunction("x.cpp", "y", 1, 2)]).tests == [
        Path("a"),
        Path("b"),
    ]
    assert select_tests(tests, None, change).tests == [Path("a"), Path("b")]


@pytest.mark.parametrize(
    ("signature", "name", "same"),
    [
        ("smt::Parser::parse(std::string const&)", "Parser::parse", True),
        ("smt::Parser::parse(std::string const&)", "parse", True),
        ("smt::Parser::parse(std::string const&)", "arse", False),
        ("std::vector<int> smt::list<a, b>(std::map<int, f(int)>)", "smt::list", True),
        ("(anonymous namespace)::help(int)", "help", True),
        ("smt::Set::operator()(int) const", "Set::operator()", True),
        ("main", "main", True),
        ("f(int)", "", False),
    ],
)
def test_names_are_the_same_with_and_without_what_surrounds_them(
    signature: str, name: str, same: bool
) -> None:
    assert same_name(signature, name) == same


def test_a_map_is_written_small_and_read_back() -> None:
    found = a_map(**{f"function{n}": {f"test{m}" for m in range(50)} for n in range(200)})
    assert decode(encode(found)) == found
    assert len(encode(found)) < 10_000
    assert encode(found) == encode(decode(encode(found)))


@pytest.mark.parametrize("data", [b"", b"{}", encode(a_map(f={"t"}))[:-9]])
def test_what_is_no_map_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidInput, match="coverage map"):
        decode(data)


def test_shards_of_one_commit_are_merged_and_others_refused() -> None:
    both = a_map(f={"a"}).merged(a_map(f={"b"}, g={"b"}))
    assert both == a_map(f={"a", "b"}, g={"b"})
    with pytest.raises(InvalidInput, match="shard"):
        both.merged(CoverageMap("d" * 40, {}))


def test_each_target_of_a_matrix_has_a_part_of_the_map() -> None:
    one, two = a_map(f={"a"}).with_target("one"), a_map(f={"b"}, g={"b"}).with_target("two")
    both = decode(encode(one.merged(two)))
    assert both.functions == a_map(f={"a", "b"}, g={"b"}).functions
    assert both.of_target("one") == a_map(f={"a"}, g=set())
    assert both.of_target("two") == a_map(f={"b"}, g={"b"})
    assert both.of_target("new") == both, "nothing is known about it"
    assert a_map(f={"a"}).of_target("one") == a_map(f={"a"}), "of a file without a matrix"


def test_a_function_of_one_target_is_not_taken_for_that_of_another() -> None:
    one, two = (
        CoverageMap(COMMIT, {Function(f"fuzz_{name}.cpp", "run(char*)", 3): frozenset({"a"})})
        for name in ("one", "two")
    )
    both = one.with_target("one").merged(two.with_target("two"))
    changed = [ChangedFunction("fuzz_two.cpp", "run", 3, 9)]
    assert both.of_target("two").tests_reaching(changed) == ["a"]
    assert both.of_target("one").tests_reaching(changed) == []


@pytest.mark.parametrize("text", ["0/4", "5/4", "x", "1/", "/2", "-1/2"])
def test_a_shard_is_a_number_of_a_count(text: str) -> None:
    assert parse_shard("2/4") == (2, 4)
    with pytest.raises(InvalidInput, match="2/4"):
        parse_shard(text)


def test_functions_are_found_by_their_brackets() -> None:
    found = [(span.name, span.first, span.last) for span in functions_in(SOURCE)]
    assert found == [
        ("Parser::parse", 6, 6),
        ("Parser::longer", 8, 10),
        ("Parser::shorter", 11, 11),
        ("unused", 13, 13),
        ("main", 15, 20),
    ]


TRICKY = """\
#define OPEN { \\
  {
int table[] = {1, 2};
enum class E { A, B };
Parser::Parser(int n) : size_{n}, all{1, 2} {
  auto f = [&](int x) { return "}" ; };  // }
}
bool operator==(const E& a, const E& b) { return true; }
extern "C" int entry(const char* s) { return s['}']; }
template <typename T> struct Box {
  T operator()(T x) const noexcept { return x; }
  ~Box() {}
};
"""


def test_brackets_in_strings_lists_and_macros_are_ignored() -> None:
    assert [(span.name, span.first) for span in functions_in(TRICKY)] == [
        ("Parser::Parser", 5),
        ("operator==", 8),
        ("entry", 9),
        ("Box::operator()", 11),
        ("Box::~Box", 12),
    ]


DIFF = """\
diff --git a/a.cpp b/a.cpp
--- a/a.cpp
+++ b/a.cpp
@@ -9 +9,2 @@ int longer
+    return text[1];
@@ -13,2 +13,0 @@ static
-gone
diff --git a/gone.cpp b/gone.cpp
--- a/gone.cpp
+++ /dev/null
@@ -1,9 +0,0 @@
"""


def test_a_diff_leads_to_the_functions_it_touches() -> None:
    hunks = hunks_of(DIFF)
    assert hunks == [("a.cpp", 9, 10), ("a.cpp", 13, 14)]
    changed = changed_functions(hunks, {"a.cpp": SOURCE})
    assert [one.name for one in changed] == ["Parser::longer", "unused"]
    assert changed_functions(hunks[:1], {"a.cpp": "MACRO\n"}) == [
        ChangedFunction("a.cpp", "", 9, 10)
    ]
