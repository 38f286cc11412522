"""Histories about builds that lose what reports a failure: a sanitizer, or assertions."""

from tests.fuzzing.histories.bookkeeping import BUG
from tests.fuzzing.histories.failures import ADDRESSES, UNDEFINED
from tests.fuzzing.histories.planted import FINE, Expected, History, Step

PLAIN = "cc -g -O0"
NO_ASSERTIONS = f"{PLAIN} -DNDEBUG"
ADDRESS = f"{PLAIN} -fsanitize=address"
OVERFLOW = f"{PLAIN} -fsanitize=undefined"

HISTORIES = (
    History(
        "a build without assertions closes nothing, and its commit did not fix the bug",
        {"good": FINE, "bug": BUG, "release": BUG, "debug": BUG, "fix": FINE},
        (Step("bug", ("X",), 1), Step("release", (), 1), Step("debug", (), 1), Step("fix", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="fix"),),
        compilers={"release": NO_ASSERTIONS},
    ),
    History(
        "whoever builds assertions in again is not blamed",
        {"good": FINE, "bug": BUG, "release": BUG, "debug": BUG},
        (Step("debug", ("X",), 1),),
        (Expected("parse", since=("bug",), good="good"),),
        compilers={"release": NO_ASSERTIONS},
    ),
    History(
        "whoever builds assertions in for the first time is not blamed alone",
        {"good": FINE, "bug": BUG, "debug": BUG},
        (Step("debug", ("X",), 1),),
        (Expected("parse", since=("debug",), good="good", exact=False,
                  suspects=("bug", "debug")),),
        compilers={"good": NO_ASSERTIONS, "bug": NO_ASSERTIONS},
    ),
    History(
        "a build without its sanitizer closes nothing",
        {"good": FINE, "bug": ADDRESSES, "lost": ADDRESSES, "found": ADDRESSES, "fix": FINE},
        (Step("bug", ("Xd",), 1), Step("lost", (), 1), Step("found", (), 1), Step("fix", (), 0)),
        (Expected("in use", "closed", ("bug",), "good", gone="fix", kind="sanitizer"),),
        compiler=ADDRESS, compilers={"lost": PLAIN},
    ),
    History(
        "nor does it fix what lets the program go on, or blame whoever builds it in again",
        {"good": FINE, "bug": UNDEFINED, "lost": UNDEFINED, "found": UNDEFINED, "fix": FINE},
        (Step("found", ("X",), 1), Step("lost", (), 1), Step("fix", (), 0)),
        (Expected("overflow", "closed", ("bug",), "good", gone="fix", kind="sanitizer"),),
        compiler=OVERFLOW, compilers={"lost": PLAIN},
    ),
)  # fmt: skip
