"""A matrix with the real tools: libFuzzer with two sanitizers, AFL++ and plain programs."""

from pathlib import Path

import pytest

from tests.fuzzing.roles.test_fuzzer import counts, findings_of
from tests.fuzzing.support.scripted_solver import World
from tests.support.debian import missing_reason
from tests.support.running import run
from windlass_fuzz.findings.untriaged import Untriaged
from windlass_fuzz.roles.coverage import CoverageRole
from windlass_fuzz.roles.status import read_status

# Both targets reach `peek`, which reads behind its block: only AddressSanitizer sees that.
SOURCE = """\
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int peek(size_t size) {
  char *block = calloc(8, 1);
  int seen = block[SIZE];
  free(block);
  return seen;
}
#ifdef TARGET_left
static int enter(const unsigned char *text, size_t size) {
  return size > 1 && text[0] == 'X' ? peek(size) : 0;
}
#else
static int begin(const unsigned char *text, size_t size) {
  return size > 1 && text[1] == 'X' ? peek(size) : 0;
}
static int enter(const unsigned char *text, size_t size) { return begin(text, size); }
#endif
int LLVMFuzzerTestOneInput(const unsigned char *text, size_t size) {
  enter(text, size);
  return 0;
}
#ifdef OWN_MAIN
int main(int count, char **names) {
  unsigned char text[64];
  FILE *file = fopen(names[count - 1], "r");
  return file ? LLVMFuzzerTestOneInput(text, fread(text, 1, 64, file)) : 2;
}
#endif
"""
GOOD = SOURCE.replace("SIZE", "size & 7")
BROKEN = SOURCE.replace("SIZE", "size > 1 ? 8 : 0")
FIXED = SOURCE.replace("SIZE", "7")
BUILD = """#!/bin/sh
set -e
mkdir -p build
if [ "$1" = coverage ]; then
  for target in left right; do
    clang -DOWN_MAIN -DTARGET_$target -fprofile-instr-generate -fcoverage-mapping \\
      -o build/$target target.c
  done
  exit
fi
case "$WINDLASS_FUZZ_ENGINE" in
  afl) compiler='afl-clang-fast -DOWN_MAIN' ;;
  command) compiler='clang -DOWN_MAIN' ;;
  *) compiler='clang -fsanitize=fuzzer' ;;
esac
case "$WINDLASS_FUZZ_SANITIZER" in
  memory) echo 'no such library' >&2; exit 1 ;;
  none) ;;
  *) compiler="$compiler -fsanitize=$WINDLASS_FUZZ_SANITIZER" ;;
esac
AFL_QUIET=1 AFL_DONT_OPTIMIZE=1 $compiler -g -DTARGET_$WINDLASS_FUZZ_TARGET \\
  -o build/$WINDLASS_FUZZ_TARGET target.c
"""
DESCRIPTION = """
name: scripted
repository: {repository}
build: {{production: [./build.sh, production], coverage: [./build.sh, coverage]}}
binaries: ['build/{{target}}']
tests: ['tests/*']
engine: {{name: libfuzzer, binary: 'build/{{target}}'}}
coverage: {{argv: ['{{binaries}}/build/{{target}}', '{{input}}'], binary: 'build/{{target}}'}}
input_timeout: 5s
memory: 512MiB
cores: 1
{more}
"""
SANITIZERS = """
matrix:
  targets: [left, right]
  sanitizers: [address, undefined, memory]
  exclude: [{target: right, sanitizer: memory}, {target: right, sanitizer: undefined}]
"""
ENGINES = """
matrix:
  targets: [left]
  sanitizers: [address]
  engines:
    - libfuzzer
    - name: afl
      options: {argv: ['{binaries}/build/{target}', '@@'], memory_bound: false}
    - name: command
      options: {argv: ['{binaries}/build/{target}', '{input}'], sanitizer: true}
"""
TESTS = {"tests/a.txt": "words", "tests/b.txt": "XX"}


class ClangWorld(World):
    """A world for two targets in C."""

    @property
    def description(self) -> str:
        return DESCRIPTION.format(repository=self.repository, more=self.more)

    def commit_source(self, message: str, source: str, **tests: str) -> str:
        return self.commit(message, build_sh=BUILD, **{"target.c": source, **tests})


@pytest.mark.skipif(missing_reason("clang") is not None, reason=str(missing_reason("clang")))
def test_one_bug_of_two_targets_that_one_sanitizer_sees(tmp_path: Path) -> None:
    world = ClangWorld(tmp_path, more=SANITIZERS)
    bad = world.commit_source("bug", BROKEN, **TESTS)
    run(world.build_and_schedule(bad))
    report = run(world.fuzz(bad, budget_ms=10_000))
    assert (report.outcome, counts(world)[bad]) == ("fuzzed", 1)
    outcomes = {one.combination: one.outcome for one in report.combinations}
    assert outcomes == {
        "left-address": "fuzzed", "left-undefined": "fuzzed", "left-memory": "skipped",
        "right-address": "fuzzed",
    }, [one.why for one in report.combinations]  # fmt: skip
    (found,) = run(findings_of(world))
    assert found.title.startswith("AddressSanitizer: heap-buffer-overflow in peek")
    assert found.combinations == ["left-address", "right-address"]
    assert found.introduced_by == bad
    red = {one.combination for one in run(read_status(world.pipeline)).unhealthy}
    assert red == {"left-memory"}
    fixed = world.commit_source("fix", FIXED)
    run(world.build_and_schedule(fixed))
    assert run(world.fuzz(fixed, budget_ms=10_000)).closed == [found.key]


@pytest.mark.skipif(missing_reason("clang") is not None, reason=str(missing_reason("clang")))
def test_all_targets_are_in_one_coverage_map(tmp_path: Path) -> None:
    world = ClangWorld(tmp_path, more=SANITIZERS)
    run(world.build_and_schedule(world.commit_source("good", GOOD, **TESTS)))
    role = CoverageRole(world.solver, world.pipeline, world.work("coverage"))
    report = run(role.run_once())
    assert (report.tests, report.merged) == (4, True)
    # `begin` and another `enter` are in the right target alone.
    assert report.functions == 6


@pytest.mark.skipif(missing_reason("afl-fuzz") is not None, reason=str(missing_reason("afl-fuzz")))
def test_three_engines_call_one_bug_one_finding(tmp_path: Path) -> None:
    world = ClangWorld(tmp_path, more=ENGINES)
    bad = world.commit_source("bug", BROKEN, **{"tests/a.txt": "words"})
    run(world.build_and_schedule(bad))
    left = tmp_path / "left"
    left.mkdir()
    (left / "crash").write_bytes(b"XX")
    names = ["left-address-libfuzzer", "left-address-afl", "left-address-command"]
    for name in names:
        run(Untriaged(world.pipeline, name).keep(bad, left))
    report = run(world.fuzz(bad, budget_ms=15_000))
    assert [one.outcome for one in report.combinations] == ["fuzzed"] * 3
    (found,) = run(findings_of(world))
    assert found.combinations == sorted(names)
    assert {one.engine for one in report.combinations} == {"libfuzzer", "afl", "command"}
    assert world.objects("corpus") == ["solvers/scripted/corpus/left/corpus.tar.gz"]
