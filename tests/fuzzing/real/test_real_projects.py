"""Real projects with planted bugs, through all roles: found, dated, kept open, closed by the fix.

The short form has tests that show the bug. In the long one (`make fuzz-real`) the engines have to
find it.
"""

import os
from pathlib import Path

import pytest

from tests.fuzzing.real.projects import PROJECTS, Project
from tests.fuzzing.real.sources import sources_of
from tests.fuzzing.roles.test_fuzzer import findings_of
from tests.fuzzing.support.scripted_solver import World
from tests.support.debian import missing_reason
from tests.support.running import run

LONG = bool(os.environ.get("WINDLASS_FUZZ_LONG"))
FIND_MS = 900_000  # a limit: the run ends at the first bug; a tenth of it is for triage
DUPLICATES = int(LONG)  # engines reach a bug on several ways
FIXED_MS = 60_000 if LONG else 3_000
FIXED_RUNS = 40  # a limit, for a busy machine: the first run with time for all inputs is the last
DESCRIPTION = """
name: scripted
repository: {repository}
build: {{production: [sh, build.sh, production], coverage: [sh, build.sh, coverage]}}
binaries: [target]
tests: ['tests/*']
engine: {engine}
memory: 1GiB
input_timeout: 5s
cores: 1
"""

pytestmark = pytest.mark.skipif(
    missing_reason("clang") is not None, reason=missing_reason("clang") or ""
)


class RealWorld(World):
    """A project's sources with a planted history."""

    project: Project

    @property
    def description(self) -> str:
        return DESCRIPTION.format(repository=self.repository, engine=self.project.engine)

    def plant(self, project: Project) -> dict[str, str]:
        """Makes all commits; returns their hashes by name."""
        self.project = project
        files = {
            **sources_of(project.source),
            "target.c": project.target,
            "build.sh": script_of(project),
        }
        tests = project.seeds if LONG else {**project.seeds, **project.telling}
        (self.repository / "tests").mkdir()
        for name, data in tests.items():
            (self.repository / "tests" / name).write_bytes(data)
        commits = {"good": self._commit("good", files)}
        text = files[project.patched]
        for name, change in project.changes.items():
            text = change(text)
            commits[name] = self._commit(name, {project.patched: text})
        return commits

    def _commit(self, message: str, files: dict[str, str]) -> str:
        for name, text in files.items():
            (self.repository / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message", message)
        return self.git("rev-parse", "HEAD")


def script_of(project: Project) -> str:
    sources = f"target.c {project.patched}"
    production = project.production
    if not LONG and "fuzzer" not in production:
        # Only engines need the speed, and lz4 compiles in a quarter of the time.
        production = production.replace("-O1", "-O0")
    return (
        f'if [ "$1" = coverage ]; then exec {project.coverage} -o target {sources}; fi\n'
        f"exec {production} -o target {sources}\n"
    )


@pytest.mark.parametrize("project", PROJECTS, ids=lambda one: one.source.name)
def test_a_planted_bug_is_found_dated_and_closed_by_its_fix_alone(
    project: Project, tmp_path: Path
) -> None:
    world = RealWorld(tmp_path)
    commits = world.plant(project)
    run(world.enqueue(*commits.values()))
    for _ in commits:
        built = run(world.build())
        assert (built.outcome, built.alarm) == ("built", ""), built.why
    run(world.fuzz(commits["bug"], budget_ms=FIND_MS, until_bug=True))
    found = run(findings_of(world))
    assert len(found) == 1, [(one.title, one.frames) for one in found]
    (finding,) = found
    assert (finding.kind, finding.state) == (project.kind, "open")
    assert project.words in finding.title
    assert project.function in finding.title
    assert (finding.introduced_by, finding.last_good) == (commits["bug"], commits["good"])

    for name in ("renamed", "partial"):
        run(world.fuzz(commits[name], budget_ms=FIND_MS, until_bug=True))
        found = run(findings_of(world))
        assert len(found) <= 1 + DUPLICATES
        assert any(one.state == "open" for one in found), name
        assert {one.introduced_by for one in found} == {commits["bug"]}

    for _ in range(FIXED_RUNS):
        run(world.fuzz(commits["fixed"], budget_ms=FIXED_MS))
        if all(one.state == "closed" for one in run(findings_of(world))):
            break
    for closed in run(findings_of(world)):
        assert (closed.state, len(closed.origins)) == ("closed", 1)
        assert closed.closed_in == commits["fixed"] or LONG
