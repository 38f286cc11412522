"""The repository that `make demo-fuzz` fuzzes: tinysolve, with a history that contains a bug.

The sources of the first commit are in `examples/tinysolver`. Each later commit is a few
replacements in them, which are listed here.
"""

import os
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

SOURCES: Final = Path(__file__).with_name("tinysolver")
BUG: Final = "Fold constants before the search"
FIX: Final = "Leave divisions by zero to the search"


@dataclass(frozen=True)
class Step:
    """A commit: its message, new files, and replacements (file, old text, new text)."""

    message: str
    files: dict[str, str] = field(default_factory=dict)
    edits: tuple[tuple[str, str, str], ...] = ()


FOLD: Final = """\
// Constants that can be known before the search.
#include <stdexcept>

#include "expression.h"

static long divide(long left, long right) {
  if (right == 0) throw std::domain_error("division by zero");
  return left / right;
}

Node fold(const Node& node) {
  if (!node->left) return node;
  auto made = std::make_shared<Expression>(*node);
  made->left = fold(node->left);
  made->right = fold(node->right);
  if (made->left->op != 'n' || made->right->op != 'n') return made;
  long left = made->left->number, right = made->right->number;
  auto number = std::make_shared<Expression>();
  number->op = 'n';
  if (made->op == '+') number->number = left + right;
  else if (made->op == '-') number->number = left - right;
  else if (made->op == '/') number->number = divide(left, right);
  else return made;
  return number;
}
"""

DIVISION: Final = """\
    case '/':
      if (right == 0) return false;
      result = left / right;
      return true;
    case '<':"""

CALL_OF_FOLD: Final = """\
  if (problem.simplify)
    for (Node& claim : problem.claims) claim = fold(claim);
  Values values;
  std::puts"""

HISTORY: Final = (
    Step("A solver for small ranges"),
    Step("Say what a file looks like", {"docs.md": "A line each: var, assert, simplify.\n"}),
    Step(
        "Multiplication",
        {"tests/product.ts": "var x 0 9\nvar y 0 9\nassert x * y = 42\n"},
        (
            (
                "src/evaluate.cpp",
                "    case '<':",
                "    case '*': result = left * right; return true;\n    case '<':",
            ),
        ),
    ),
    Step(
        "Division, which has no value by zero",
        {"tests/division.ts": "var x 1 9\nassert x / 2 = 3\n"},
        (
            ("src/parse.cpp", "case '*': return 5;", "case '*': case '/': return 5;"),
            (
                "src/evaluate.cpp",
                "    case '<':",
                DIVISION,
            ),
        ),
    ),
    Step(
        BUG,
        {
            "src/fold.cpp": FOLD,
            "tests/fold.ts": "simplify\nvar x 0 9\nassert x > 8 / 4 - 1\n",
        },
        (
            ("src/expression.h", "bool parse(", "Node fold(const Node& node);\nbool parse("),
            (
                "src/main.cpp",
                "  Values values;\n  std::puts",
                CALL_OF_FOLD,
            ),
        ),
    ),
    Step(
        "Refuse files that cannot be read",
        {},
        (
            (
                "src/main.cpp",
                "  std::stringstream text;",
                "  if (!file) return 2;\n  std::stringstream text;",
            ),
        ),
    ),
)
FIXED: Final = Step(
    FIX,
    {},
    (
        (
            "src/fold.cpp",
            "  else if (made->op == '/') ",
            "  else if (made->op == '/' && right != 0) ",
        ),
    ),
)

PULL_REQUEST: Final = Step(
    "Fold all divisions again",
    {"tests/zero.ts": "simplify\nvar x 0 9\nassert x > 8 / 0\n"},
    (
        (
            "src/fold.cpp",
            "  else if (made->op == '/' && right != 0) ",
            "  else if (made->op == '/') ",
        ),
    ),
)


def make_repository(folder: Path) -> dict[str, str]:
    """Creates the repository; returns the commits by their messages, oldest first."""
    shutil.copytree(SOURCES, folder)
    _git(folder, "init", "--quiet", "--initial-branch=main")
    return {step.message: commit(folder, step) for step in HISTORY}


def branch(folder: Path, name: str, step: Step) -> str:
    """Makes one commit on a new branch and goes back to main; returns its hash."""
    _git(folder, "checkout", "--quiet", "-b", name)
    made = commit(folder, step)
    _git(folder, "checkout", "--quiet", "main")
    return made


def commit(folder: Path, step: Step) -> str:
    """Makes one commit and returns its hash."""
    for name, text in step.files.items():
        (folder / name).write_text(text)
    for name, old, new in step.edits:
        before = (folder / name).read_text()
        if old not in before:
            raise ValueError(f"expected {old!r} in {name}")
        (folder / name).write_text(before.replace(old, new, 1))
    _git(folder, "add", "--all")
    _git(folder, "commit", "--quiet", "--message", step.message)
    return _git(folder, "rev-parse", "HEAD").strip()


def _git(folder: Path, *words: str) -> str:
    author = {
        "GIT_AUTHOR_NAME": "Ada", "GIT_AUTHOR_EMAIL": "ada@example.org",
        "GIT_COMMITTER_NAME": "Ada", "GIT_COMMITTER_EMAIL": "ada@example.org",
        "GIT_CONFIG_GLOBAL": os.devnull,
    }  # fmt: skip
    done = subprocess.run(
        ["git", "-C", str(folder), *words], env={**os.environ, **author}, check=True,
        stdin=subprocess.DEVNULL, capture_output=True, text=True,
    )  # fmt: skip
    return done.stdout
