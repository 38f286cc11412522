"""Only commits that change nothing but documents and tests are free of blame."""

import pytest

from windlass_fuzz.sources.harmless import may_break
from windlass_fuzz.state.rules import EXTENSIONS

TESTS = ("tests/*.cnf", "tests/**/*.smt2")


@pytest.mark.parametrize(
    "path",
    ["README.md", "docs/guide.rst", "LICENSE", "LICENSE.txt", "doc/a/pic.svg", ".github/ci.yml",
     "tests/a.cnf", "tests/deep/er/a.smt2", ".gitignore", "CHANGELOG"],
)  # fmt: skip
def test_these_break_nothing(path: str) -> None:
    assert not may_break([path], EXTENSIONS, TESTS)


@pytest.mark.parametrize(
    "path",
    ["src/a.c", "src/gr\u00f6\u00dfe.CPP", "CMakeLists.txt", "docs/CMakeLists.txt", "Makefile",
     "configure.ac", "src/parser.y", "deps/parser", ".gitmodules", "tests/run.sh", "src/a.inc",
     "tests/CMakeLists.txt", "tests/target.c", "config.txt", "VERSION"],
)  # fmt: skip
def test_these_may(path: str) -> None:
    assert may_break(["README.md", path], EXTENSIONS, (*TESTS, "tests/*"))
