"""`windlass fuzz init FOLDER`: recognises projects, and what it writes builds them."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.program import run_here
from tests.fuzzing.support.repository import Repository
from tests.support.debian import missing_reason
from windlass.domain.values.errors import InvalidInput
from windlass_fuzz.config.recognition import recognise, solver_file
from windlass_fuzz.config.solver_file import parse_solver

LIBRARY = "int answer(const unsigned char *d, unsigned long n) { return n > 2 ? d[0] : 0; }\n"
HARNESS = """
#include <stddef.h>
#include <stdint.h>
int answer(const unsigned char *, unsigned long);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{ return answer(data, size) & 0; }
"""
OTHER_DRIVER = (
    "int LLVMFuzzerTestOneInput(const char *, unsigned long);\nint main() { return 0; }\n"
)
MAKEFILE = "libanswer.a: answer.o\n\tar rc $@ $^\n"
CMAKE = "cmake_minimum_required(VERSION 3.16)\nproject(a C)\nadd_library(answer answer.c)\n"
# Its header is made by the build, and it needs a library of the system.
CMAKE_WITH_MORE = f"""{CMAKE}
configure_file(answer.h.in generated/answer.h)
add_executable(tool tool.c)
target_link_libraries(tool answer crypt)
"""
NEEDS_MORE = (
    "char *crypt(const char *, const char *);\n"
    "int answer(const unsigned char *d, unsigned long n) { return n > 99 && crypt(d, d); }\n"
)
# What autoconf writes does the same, in ten thousand lines.
CONFIGURE = """#!/bin/sh
printf 'CFLAGS=%s\\nCC=%s\\n%s\\n' "$CFLAGS" "$CC" "$(cat Makefile.in)" > Makefile
"""
OSS_FUZZ = """
cd $SRC/*
$CC $CFLAGS -c answer.c fuzz/one.c
$CXX $CXXFLAGS answer.o one.o $LIB_FUZZING_ENGINE -o $OUT/one
"""
SYSTEMS = {
    "plain sources": {},
    "Makefile": {"Makefile": MAKEFILE},
    "CMake": {
        "CMakeLists.txt": CMAKE_WITH_MORE,
        "answer.c": NEEDS_MORE,
        "answer.h.in": HARNESS.partition("int LLVM")[0],
        "fuzz/one.c": f"#include <answer.h>\nint LLVM{HARNESS.partition('int LLVM')[2]}",
        "tool.c": "int answer(char *, long);\nint main() { return answer(0, 0); }\n",
    },
    "Autotools": {"configure": CONFIGURE, "Makefile.in": MAKEFILE},
    "OSS-Fuzz": {".clusterfuzzlite/build.sh": OSS_FUZZ, "Makefile": "all:\n\tfalse\n"},
}


def a_project(folder: Path, files: dict[str, str]) -> Repository:
    repository = Repository(folder / "project")
    known = {"answer.c": LIBRARY, "fuzz/one.c": HARNESS, "fuzz/driver.c": OTHER_DRIVER}
    for name, text in {**known, **files}.items():
        path = repository.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
    repository.commit()
    return repository


@pytest.mark.parametrize(
    "system",
    [
        pytest.param(name, marks=pytest.mark.skipif(
            (why := missing_reason("clang") or missing_reason("cmake")) is not None,
            reason=why or "",
        ))
        for name in SYSTEMS
    ],
)  # fmt: skip
def test_one_command_leads_from_a_clone_to_a_fuzzed_commit(tmp_path: Path, system: str) -> None:
    repository = a_project(tmp_path, SYSTEMS[system])
    budget = ("--budget", "3s") if system == "Makefile" else ()
    places = {
        "WINDLASS_FUZZ_BUCKET": str(tmp_path / "bucket"),
        "WINDLASS_FUZZ_WORK": str(tmp_path / "work"),
    }
    done = run_here(("fuzz", "init", "project", *budget), {**os.environ, **places}, tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"project.yaml: {system}, targets one (fuzz/one.c)" in done.stderr
    head = repository.git("rev-parse", "HEAD")
    assert f"{head[:12]}" in done.stdout
    assert "alarm" not in done.stdout
    assert ("executions" in done.stdout) == bool(budget)


def test_a_build_that_fails_prints_its_first_error(tmp_path: Path) -> None:
    repository = a_project(tmp_path, {"answer.c": "int answer(void) { return missing; }\n"})
    places = {
        "WINDLASS_FUZZ_BUCKET": str(tmp_path / "bucket"),
        "WINDLASS_FUZZ_WORK": str(tmp_path / "work"),
    }
    done = run_here(("fuzz", "init", "project"), {**os.environ, **places}, tmp_path)
    assert done.returncode == 1
    assert f"{repository.git('rev-parse', 'HEAD')}: failed" in done.stdout
    assert "error: use of undeclared identifier 'missing'" in done.stdout


def test_a_project_with_meson_is_recognised(tmp_path: Path) -> None:
    repository = a_project(tmp_path, {"meson.build": "project('a', 'c')", "Makefile": "all:"})
    project = recognise(repository.folder)
    assert project.system == "Meson"
    assert "meson setup fuzz-build" in solver_file(project, "project", "main")


def test_several_harnesses_are_targets_and_corpora_are_tests(tmp_path: Path) -> None:
    more = {"fuzz/two.cpp": HARNESS, "fuzz/seed_corpus/a": "1", "fuzz/sub/one.c": HARNESS}
    project = recognise(a_project(tmp_path, more).folder)
    written = solver_file(project, "project", "trunk")
    solver = parse_solver(written.encode(), Path("project.yaml"))
    assert solver.matrix is not None
    assert len(solver.matrix.targets) == len({"one", "two", "fuzz_sub_one_c"})
    assert (solver.tests, solver.branch) == (("fuzz/seed_corpus/*",), "trunk")


def test_without_a_harness_it_says_what_is_missing(tmp_path: Path) -> None:
    folder = a_project(tmp_path, {"fuzz/one.c": "int x;\n"}).folder
    with pytest.raises(InvalidInput, match="no source file defines LLVMFuzzerTestOneInput"):
        recognise(folder)
    with pytest.raises(InvalidInput, match="not the top folder of a git repository"):
        recognise(folder / "fuzz")


def test_names_of_files_do_not_become_commands(tmp_path: Path) -> None:
    """A clone is foreign: what its files are called must not run on this machine."""
    evil = {"a$(touch hacked).c": HARNESS, "corpus'; touch hacked;'/x": "1"}
    project = recognise(a_project(tmp_path, evil).folder)
    written = solver_file(project, "project", "main")
    assert (project.targets, project.corpora) == (["one"], [])
    script = parse_solver(written.encode(), Path("a.yaml")).build.production[2]
    assert "hacked" not in script
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)
