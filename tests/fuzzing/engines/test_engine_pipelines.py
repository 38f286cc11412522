"""libFuzzer and AFL++ from new commits to a bisected finding, with every role, on a real server."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.fuzzing.support.scripted_solver import World
from tests.support.debian import missing_reason
from tests.support.running import run
from tests.support.s3 import S3Server
from windlass_fuzz.buckets.s3 import S3Bucket
from windlass_fuzz.findings.store import FindingStore
from windlass_fuzz.roles.coverage import CoverageReport, CoverageRole
from windlass_fuzz.roles.manager import Manager, ManagerReport
from windlass_fuzz.sources.git_commits import GitCommitSource
from windlass_fuzz.sources.mirror import Mirror
from windlass_fuzz.state.pipeline import Pipeline

LIMIT_MS = 600_000  # runs end at the first bug

# Two functions, of which each test reaches one; the bug comes into `numbers`.
SOURCE = """\
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
static int numbers(const unsigned char *text, size_t size) {
  return size > 2 ? text[1] : 0; /* BUG */
}
static int words(const unsigned char *text, size_t size) {
  return size > 2 ? text[2] : 0;
}
int LLVMFuzzerTestOneInput(const unsigned char *text, size_t size) {
  if (size == 0) return 0;
  (void)(text[0] == 'n' ? numbers(text, size) : words(text, size));
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
BROKEN = SOURCE.replace(
    "  return size > 2 ? text[1]",
    "  if (text[size - 1] == '2') abort();\n  return size > 2 ? text[1]",
)
LATER = BROKEN.replace("/* BUG */", "/* the second */")
TESTS = {"tests/a.txt": "n123", "tests/b.txt": "words!"}


@dataclass(frozen=True)
class Kind:
    """An engine: its settings, and how to make its two builds."""

    engine: str
    production: str
    coverage: str

    @property
    def build(self) -> str:
        return (
            "#!/bin/sh\nset -e\nmkdir -p build\n"
            f'if [ "$1" = coverage ]; then {self.coverage} -o build/target target.c\n'
            f"else {self.production} -o build/target target.c; fi\n"
        )


LIBFUZZER = Kind(
    "{name: libfuzzer, binary: build/target}",
    "clang -g -fsanitize=fuzzer,address",
    "clang -fsanitize=fuzzer -fprofile-instr-generate -fcoverage-mapping",
)
AFL = Kind(
    "{name: afl, argv: ['{binaries}/build/target', '@@']}",
    "AFL_QUIET=1 afl-clang-fast -DOWN_MAIN",
    "clang -DOWN_MAIN -fprofile-instr-generate -fcoverage-mapping",
)
DESCRIPTION = """
name: scripted
repository: {repository}
build: {{production: [./build.sh, production], coverage: [./build.sh, coverage]}}
binaries: [build/target]
tests: ['tests/*']
engine: {engine}
input_timeout: 5s
memory: 512MiB
cores: 1
"""


class PipelineWorld(World):
    """A world for a target in C, with its state on a server."""

    def use(self, kind: Kind, bucket: S3Bucket) -> None:
        self.kind = kind
        self.pipeline = Pipeline(bucket, "scripted", self.pipeline.runtime, "test")

    @property
    def description(self) -> str:
        return DESCRIPTION.format(repository=self.repository, engine=self.kind.engine)

    async def manage(self) -> ManagerReport:
        mirror = Mirror(self.solver.repository, self.work("manager") / "mirror.git")
        commits = GitCommitSource(mirror, "main", self.solver.repository)
        return await Manager(self.pipeline, commits, self.solver.commits).run_once()

    async def map_coverage(self) -> CoverageReport:
        return await CoverageRole(self.solver, self.pipeline, self.work("coverage")).run_once()


@pytest.mark.parametrize(
    ("kind", "title"),
    [
        pytest.param(
            LIBFUZZER, "numbers", id="libfuzzer",
            marks=pytest.mark.skipif(
                missing_reason("clang") is not None, reason=missing_reason("clang") or ""
            ),
        ),
        pytest.param(
            AFL, "SIGABRT", id="afl",
            marks=pytest.mark.skipif(
                missing_reason("afl-fuzz") is not None, reason=missing_reason("afl-fuzz") or ""
            ),
        ),
    ],
)  # fmt: skip
def test_a_commit_goes_the_whole_way_to_a_bisected_finding(
    tmp_path: Path, s3_server: S3Server, kind: Kind, title: str
) -> None:
    world = PipelineWorld(tmp_path)
    name = s3_server.make_bucket(f"pipeline-{title.lower()}")
    bucket = S3Bucket(name, **s3_server.options())
    world.use(kind, bucket)
    build = {"build.sh": kind.build}
    good = world.commit("good", **{"target.c": SOURCE}, **build, **TESTS)
    bad = world.commit("bad", **{"target.c": BROKEN})
    later = world.commit("later", **{"target.c": LATER})

    assert run(world.manage()).queued == (good, bad, later)
    for commit in (good, bad, later):
        report = run(world.build())
        assert (report.outcome, report.commit) == ("built", commit), report.why
    assert run(world.manage()).scheduled == (good, bad, later)
    mapped = run(world.map_coverage())
    assert (mapped.commit, mapped.tests, mapped.troubles) == (later, 2, [])

    fuzzed = run(world.fuzz(later, budget_ms=LIMIT_MS, until_bug=True))
    assert (fuzzed.tests, fuzzed.chosen_by) == (1, "1 of 2 reach the changes")
    assert fuzzed.statistics is not None
    assert fuzzed.statistics.executions > 0
    (key,) = fuzzed.findings
    finding = run(FindingStore(world.pipeline).get(key))
    assert title in finding.title
    assert (finding.found_in, finding.introduced_by, finding.last_good) == (later, bad, good)
    assert (finding.old, finding.shown) == (True, finding.tried)
    assert finding.size <= len("n122")
    page = run(bucket.get(f"solvers/scripted/findings/{key}/report.md"))
    assert page is not None
    assert f"introduced by {bad[:12]}" in page.body.decode()
    assert f"windlass fuzz reproduce scripted {key}" in page.body.decode()
    counts = {entry.hash: entry.fuzz_count for entry in run(world.pipeline.schedule.read())}
    assert counts == {good: 0, bad: 0, later: 1}
