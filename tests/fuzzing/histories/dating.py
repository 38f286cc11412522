"""Histories about origins: builds that are missing, late, lost or refuse, and merges."""

from tests.fuzzing.histories.bookkeeping import BUG, checked, two
from tests.fuzzing.histories.planted import FINE, Expected, History, Step, program

REFUSES = program("  return 3;")
DIVISION = program('  if (has("/")) { assert(!has("/0")); return 0; }')
NO_DIVISION = program('  if (has("/")) return 3;')
STRICT = program('  if (!has("H")) return 3;')  # refuses inputs without a header

HISTORIES = (
    History(
        "the fix is searched as the origin is, not taken for the commit that was fuzzed",
        {"good": FINE, "bug": BUG, "still": BUG, "fix": FINE, "later": FINE, "last": FINE},
        (Step("bug", ("X",), 1), Step("last", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="last", end="fixed in fix"),),
    ),
    History(
        "without builds the end is a range, which later builds narrow",
        {"good": FINE, "bug": BUG, "still": BUG, "fix": FINE, "later": FINE, "last": FINE},
        (Step("bug", ("X",), 1), Step("last", (), 0), Step("last", (), 0, built=("later",))),
        (Expected("parse", "closed", ("bug",), "good", gone="last",
                  end="no longer seen since later (first good build after bad build bug, "
                  "3 commits between them may be the fix)"),),
        unbuilt=("still", "fix", "later"),
    ),
    History(
        "a fix that cures only some inputs is not the fix",
        {"good": FINE, "bug": BUG, "half": checked('has("X") && has("Y")'), "fix": FINE,
         "last": FINE},
        (Step("bug", ("X", "XY"), 1), Step("last", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="last", end="fixed in fix"),),
    ),
    History(
        "the only commit that changes code is named, though later ones are built",
        {"good": FINE, "guilty": BUG, "docs": BUG, "fix": FINE, "more": FINE},
        (Step("docs", ("X",), 1), Step("more", (), 0)),
        (Expected("parse", "closed", ("docs",), "good", gone="more", end="fixed in fix",
                  blamed="guilty"),),
        unbuilt=("guilty", "fix"), touched={"docs": "README.md", "more": "README.md"},
    ),
    History(
        "an input is not reduced to one that other builds refuse",
        {"good": STRICT, "bug": BUG, "later": BUG, "fix": STRICT},
        (Step("later", ("H aX",), 1), Step("fix", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "origin and fix are found with the input that other builds accept",
        {"good": STRICT, "bug": BUG, "fix": STRICT},
        (Step("bug", ("X", "aX", "bX", "HX"), 1), Step("fix", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "inputs that older builds refuse keep a finding open while they fail",
        {"good": STRICT, "bug": checked('has("X")'), "half": checked('has("X") && !has("H")'),
         "fix": STRICT},
        (Step("bug", ("X", "HX"), 1), Step("half", (), 1), Step("fix", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "a reduced input that the fix refuses does not keep a finding open",
        {"bug": BUG, "fix": STRICT},
        (Step("bug", ("HaX",), 1), Step("fix", (), 0)),
        (Expected("parse", "closed", ("bug",), None, exact=False, gone="fix"),),
    ),
    History(
        "a fix that refuses all inputs is no evidence",
        {"good": STRICT, "bug": BUG, "broken": REFUSES},
        (Step("bug", ("X", "HX"), 1), Step("broken", (), 1)),
        (Expected("parse", since=("bug",), good="good"),),
    ),
    History(
        "a wrong fix that brings another bug is not blamed on the first one",
        {"good": FINE, "bug": two('has("X")', "0"), "later": two('has("X")', "0"),
         "wrong": program('  if (has("X")) stop();', "static void stop(void) { abort(); }"),
         "last": program('  if (has("X")) stop();', "static void stop(void) { abort(); }")},
        (Step("last", ("X",), 1),),
        (Expected("SIGABRT in stop", since=("wrong",), good="good", exact=False),),
    ),
    History(
        "a bug whose message and function were changed blames nobody for certain",
        {"good": FINE, "bug": two('has("X")', "0"), "changed": two("0", 'has("X")')},
        (Step("changed", ("X",), 1),),
        (Expected("!other()", since=("changed",), good="good", exact=False),),
    ),
    History(
        "a build that refuses everything closes nothing",
        {"good": FINE, "bug": BUG, "broken": REFUSES, "fix": FINE},
        (Step("bug", ("X",), 1), Step("broken", (), 1), Step("fix", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "a build that only explains how to call it closes nothing, though it exits with 0",
        {"good": FINE, "bug": BUG, "options": program('  puts("Usage: toy --input FILE");'),
         "fix": FINE},
        (Step("bug", ("X",), 1), Step("options", (), 1), Step("fix", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="fix"),),
    ),
    History(
        "a build that refuses everything is not blamed, and nobody else for it",
        {"good": FINE, "broken": REFUSES, "bug": BUG},
        (Step("bug", ("X",), 1),),
        (Expected("parse", since=("bug",), good="good", exact=False),),
    ),
    History(
        "older builds that do not know the input blame nobody",
        {"good": NO_DIVISION, "feature": DIVISION},
        (Step("feature", ("/0",), 1),),
        (Expected("has", since=("feature",), good=None, exact=False),),
    ),
    History(
        "a fix that refuses the input counts if the solver says so",
        {"good": FINE, "bug": BUG, "refused": program('  if (has("X")) return 3;')},
        (Step("bug", ("X",), 1), Step("refused", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="refused"),),
        settings="findings: {refused_is_fixed: true}",
    ),
    History(
        "missing builds leave a range, and later builds narrow it",
        {"good": FINE, "quiet": FINE, "bug": BUG, "later": BUG},
        (Step("later", ("X",), 1), Step("later", (), 1, built=("quiet", "bug"))),
        (Expected("parse", since=("bug",), good="quiet"),),
        unbuilt=("quiet", "bug"),
    ),
    History(
        "a range names nobody",
        {"good": FINE, "quiet": FINE, "bug": BUG, "later": BUG},
        (Step("later", ("X",), 1),),
        (Expected("parse", since=("later",), good="good", exact=False),),
        unbuilt=("quiet", "bug"),
    ),
    History(
        "two partial searches are not merged into a culprit",
        {"good": FINE, "bug": BUG, "third": BUG, "fourth": BUG, "fifth": BUG},
        (Step("fifth", ("X",), 1), Step("fifth", ("aX",), 1, built=("good",), lost=("third",))),
        (Expected("parse", since=("fourth",), good="good", exact=False),),
        unbuilt=("good", "bug"),
    ),
    History(
        "an exact origin outlives its builds",
        {"good": FINE, "bug": BUG, "later": BUG},
        (Step("bug", ("X",), 1), Step("later", ("X",), 1, lost=("good", "bug"))),
        (Expected("parse", since=("bug",), good="good"),),
    ),
    History(
        "missing commits are built for the search if that is allowed",
        {"good": FINE, "quiet": FINE, "bug": BUG, "later": BUG},
        (Step("later", ("X",), 1),),
        (Expected("parse", since=("bug",), good="quiet"),),
        settings="bisect: build", unbuilt=("quiet", "bug"),
    ),
    History(
        "a merge that brings the bug leaves its commits as suspects",
        {"good": FINE, "harmless": FINE, "guilty": BUG, "main": FINE, "merge": BUG},
        (Step("merge", ("X",), 1),),
        (Expected("parse", since=("merge",), good="main", exact=False),),
        side=("harmless", "guilty"), unbuilt=("harmless", "guilty"),
    ),
    History(
        "a merge whose commits are built names the guilty one",
        {"good": FINE, "harmless": FINE, "guilty": BUG, "main": FINE, "merge": BUG},
        (Step("merge", ("X",), 1),),
        (Expected("parse", since=("guilty",), good="harmless"),),
        side=("harmless", "guilty"),
    ),
)  # fmt: skip
