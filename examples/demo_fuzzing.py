"""A small solver that the demo's farm fuzzes, so that the dashboard has real findings to show.

One of its commits breaks it, and one cannot be built. It is a C program, whose coverage can be
measured; without a compiler it is a shell script.
"""

import os
import subprocess
import sys
from pathlib import Path
from shutil import which
from typing import Final, NamedTuple


class Language(NamedTuple):
    """The solver in one language; `breaks` replaces `part` in the commit that breaks it."""

    file: str
    good: str
    part: str
    breaks: str
    unfinished: str  # a line with which it cannot be built
    comment: str
    build: str
    argv: str


C: Final = Language(
    "solver.c",
    """\
/* Checks that the brackets of an expression match. */
#include <assert.h>
#include <stdio.h>

static int is_known(int c) { return c < 'a' || c > 'z'; }

static int deeper(int depth, int c) {
  return depth + (c == '(') - (c == ')');
}

static int say_ok(void) {
  puts("ok");
  return 0;
}

/* No test has an expression that is wrong: fuzzing reaches this first. */
static int say_wrong(int depth) {
  puts(depth > 0 ? "one is not closed" : "one is not open");
  return 0;
}

static int check(FILE *file) {
  int depth = 0;
  for (int c; (c = fgetc(file)) != EOF; depth = deeper(depth, c)) {
    if (!is_known(c)) return 2;
  }
  return depth == 0 ? say_ok() : say_wrong(depth);
}

int main(int count, char **words) {
  FILE *file = fopen(words[count - 1], "r");
  return file == NULL ? 2 : check(file);
}
""",
    "  return depth + ",
    "  assert(depth < 2);\n  return depth + ",
    "int braces = count_braces(;\n",
    "/* {} */\n",
    """\
flags=-O1
[ "$1" = coverage ] && flags="-O0 --coverage"
cc $flags -o brackets solver.c
""",
    "'{binaries}/brackets'",
)
SHELL: Final = Language(
    "solver.sh",
    """\
#!/bin/sh
# Checks that an expression has no more closing than opening brackets.
text=$(cat "$1")
case "$text" in
  *[a-z]*) exit 2 ;;
esac
echo ok
""",
    "echo ok",
    """\
case "$text" in
  *'(('*) echo "solver.sh: deeper: Assertion 'depth < 2' failed." >&2; kill -ABRT $$ ;;
esac
echo ok""",
    "case braces in\n",
    "# {}\n",
    "sh -n solver.sh && cp solver.sh brackets\n",
    "sh, '{binaries}/brackets'",
)
SOLVER: Final = """\
name: brackets
repository: {folder}/brackets
bucket: {folder}/bucket
build:
  production: [sh, build.sh, production]
  coverage: [sh, build.sh, coverage]
binaries: [brackets]
tests: ['tests/*.txt']
engine: {{name: command, argv: [{argv}, '{{input}}'], unsupported: [2]}}
input_timeout: 5s
commits: {{fresh: 10, window: all, extensions: [.sh, .c]}}
health: {{coverage: {measured}}}
"""


def history(language: Language) -> list[tuple[str, str]]:
    """Returns the messages and the sources of the commits, the oldest first."""
    good, comment = language.good, language.comment.format
    broken = good.replace(language.part, language.breaks)
    return [
        ("Check brackets", good),
        ("Say what is checked", good + comment("Only brackets count.")),
        ("Keep the depth in a variable", broken),
        ("Begin to count braces", broken + language.unfinished),
        ("Mention the exit code", broken + comment("2: not an expression.")),
    ]


def describe(folder: Path) -> Path:
    """Makes the repository, and returns the file of its solver."""
    repository = folder / "brackets"
    (repository / "tests").mkdir(parents=True)
    (repository / "tests" / "sum.txt").write_text("(1 + 2) * (3 + 4)\n")
    (repository / "tests" / "one.txt").write_text("(1)\n")
    # A test of its own that the broken commit aborts on: found on every machine, however slow.
    (repository / "tests" / "deep.txt").write_text("((1 + 2) * 3)\n")
    language = C if which("cc") and which("gcov") else SHELL
    (repository / "build.sh").write_text(language.build)
    _git(repository, "init", "--quiet", "--initial-branch", "main")
    for message, text in history(language):
        (repository / language.file).write_text(text)
        _git(repository, "add", "--all")
        _git(repository, "commit", "--quiet", "--message", message)
    file = folder / "brackets.yaml"
    measured = str(language is C).lower()
    file.write_text(SOLVER.format(folder=folder, argv=language.argv, measured=measured))
    return file


def start_fuzzing(file: Path) -> "subprocess.Popen[bytes]":
    """Finds the commits, builds them, and fuzzes one after another for seconds each."""
    words = ["fuzz", "run", str(file), "--rounds", "5", "--budget", "4s"]
    environment = {**os.environ, "WINDLASS_FUZZ_WORK": str(file.parent / "work")}
    return subprocess.Popen(
        [sys.executable, "-m", "windlass", *words], cwd=file.parent, env=environment,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip


def _git(repository: Path, *words: str) -> None:
    about = ["-c", "user.name=demo", "-c", "user.email=demo@localhost"]
    subprocess.run(["git", "-C", str(repository), *about, *words], check=True, capture_output=True)
