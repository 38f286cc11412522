"""Histories about several branches: a bug is fixed where it was fixed, and nowhere else."""

from tests.fuzzing.histories.bookkeeping import BUG
from tests.fuzzing.histories.planted import FINE, Expected, History, OnBranch, Step

BOTH = "branches: [main, 'release/*']"
R1 = "release/1"

HISTORIES = (
    History(
        "a fix on main leaves the bug open on a release branch",
        {"good": FINE, "bug": BUG, "r1": BUG, "fix": FINE, "r2": BUG},
        (Step("bug", ("X",), 1), Step("fix", (), 1), Step("r2", ("X",), 1)),
        (
            Expected("parse", since=("bug",), good="good", branches={
                "main": OnBranch("fixed", "bug", fixed="fix"), R1: OnBranch("alive", "bug"),
            }),
        ),
        settings=BOTH, lines={R1: ("bug", ("r1", "r2"))},
    ),
    History(
        "a fix that is picked to the release branch closes the finding",
        {"good": FINE, "bug": BUG, "r1": BUG, "fix": FINE, "picked": FINE},
        (Step("bug", ("X",), 1), Step("r1", ("X",), 1), Step("fix", (), 1), Step("picked", (), 0)),
        (
            Expected("parse", "closed", ("bug",), "good", gone="fix", branches={
                "main": OnBranch("fixed", "bug", fixed="fix"),
                R1: OnBranch("fixed", "bug", fixed="picked"),
            }),
        ),
        settings=BOTH, lines={R1: ("bug", ("r1", "picked"))},
    ),
    History(
        "a merge brings the bug to a release branch",
        {"good": FINE, "r1": FINE, "bug": BUG, "merge-main": BUG, "r2": BUG},
        (
            Step("bug", ("X",), 1), Step("r1", (), 1),
            Step("r2", ("X",), 1, made=("merge-main", "r2")),
        ),
        (
            Expected("parse", since=("bug",), good="good", branches={
                "main": OnBranch("alive", "bug"),
                R1: OnBranch("alive", "merge-main", merge="merge-main"),
            }),
        ),
        settings=BOTH, lines={R1: ("good", ("r1", "merge-main", "r2"))},
        merges={"merge-main": "bug"},
    ),
    History(
        "a merge that takes over nothing fixes nothing",
        {"good": FINE, "bug": BUG, "r1": FINE, "later": BUG, "ours": BUG},
        (Step("bug", ("X",), 1), Step("r1", (), 1), Step("ours", (), 1)),
        (
            Expected("parse", since=("bug",), good="good", branches={
                "main": OnBranch("alive", "bug"), R1: OnBranch("fixed", "bug", fixed="r1"),
            }),
        ),
        settings=BOTH, lines={R1: ("bug", ("r1",))}, merges={"ours": "r1"},
    ),
    History(
        "a fix before the branch started counts for it too",
        {"good": FINE, "bug": BUG, "fix": FINE, "r1": FINE},
        (Step("bug", ("X",), 1), Step("fix", (), 0)),
        (
            Expected("parse", "closed", ("bug",), "good", gone="fix", branches={
                "main": OnBranch("fixed", "bug", fixed="fix"),
                R1: OnBranch("fixed", "bug", fixed="fix"),
            }),
        ),
        settings=BOTH, lines={R1: ("fix", ("r1",))},
    ),
    History(
        "a bug found on a release branch is on main too if the search shows it there",
        {"good": FINE, "bug": BUG, "r1": BUG, "fix": FINE},
        (Step("r1", ("X",), 1), Step("good", (), 1), Step("fix", (), 1)),
        (
            Expected("parse", since=("bug",), good="good", branches={
                "main": OnBranch("fixed", "bug", fixed="fix"), R1: OnBranch("alive", "bug"),
            }),
        ),
        settings=BOTH, lines={R1: ("bug", ("r1",))},
    ),
    History(
        "a branch that starts after the fix has it from the start",
        {"good": FINE, "bug": BUG, "r1": BUG, "fix": FINE, "later": FINE, "new": FINE, "r2": FINE},
        (
            Step("bug", ("X",), 1), Step("fix", (), 1), Step("later", (), 1, made=("new",)),
            Step("r2", (), 0),
        ),
        (
            Expected("parse", "closed", ("bug",), "good", gone="fix", branches={
                "main": OnBranch("fixed", "bug", fixed="fix"),
                R1: OnBranch("fixed", "bug", fixed="r2"),
                "release/2": OnBranch("fixed", "bug", fixed="fix"),
            }),
        ),
        settings=BOTH, lines={R1: ("bug", ("r1", "r2")), "release/2": ("fix", ("new",))},
    ),
    History(
        "a bug that was written twice is dated on each branch",
        {"good": FINE, "r1": FINE, "bug": BUG, "again": BUG},
        (Step("bug", ("X",), 1), Step("again", ("X",), 1)),
        (
            Expected("parse", since=("bug",), good="good", branches={
                "main": OnBranch("alive", "bug"), R1: OnBranch("alive", "again"),
            }),
        ),
        settings=BOTH, lines={R1: ("good", ("r1", "again"))},
    ),
    History(
        "a bug that comes back to one branch has another origin",
        {"good": FINE, "bug": BUG, "r1": BUG, "fix": FINE, "back": BUG},
        (Step("bug", ("X",), 1), Step("fix", (), 1), Step("back", ("X",), 1)),
        (
            Expected("parse", since=("bug", "back"), good="fix", branches={
                "main": OnBranch("alive", "back"), R1: OnBranch("alive", "bug"),
            }),
        ),
        settings=BOTH, lines={R1: ("bug", ("r1",))},
    ),
    History(
        "a new input of one branch makes the fix of the other unsure until it has run there",
        {"good": FINE, "bug": BUG, "r1": BUG, "fix": FINE, "r2": FINE, "later": FINE},
        (
            Step("bug", ("X",), 1), Step("fix", (), 1), Step("r1", ("abcdefX", "abcX"), 1),
            Step("r2", (), 1), Step("later", (), 0),
        ),
        (
            Expected("parse", "closed", ("bug",), "good", gone="later", branches={
                "main": OnBranch("fixed", "bug", fixed="later"),
                R1: OnBranch("fixed", "bug", fixed="r2"),
            }),
        ),
        settings=BOTH, lines={R1: ("bug", ("r1", "r2"))},
    ),
    History(
        "a deleted branch keeps nothing open",
        {"good": FINE, "bug": BUG, "r1": BUG, "fix": FINE},
        (Step("r1", ("X",), 1), Step("bug", (), 1), Step("fix", (), 0, moves={R1: None})),
        (
            Expected("parse", "closed", ("bug",), "good", gone="fix", branches={
                "main": OnBranch("fixed", "bug", fixed="fix"),
                R1: OnBranch("alive", "bug", watched=False),
            }),
        ),
        settings=BOTH, lines={R1: ("bug", ("r1",))},
    ),
    History(
        "a bug of a deleted branch alone is closed, but nobody has fixed it",
        {"good": FINE, "r1": FINE, "bug": BUG, "later": FINE},
        (Step("bug", ("X",), 1), Step("later", (), 1), Step("later", (), 0, moves={R1: None})),
        (
            Expected("parse", "closed", ("bug",), "r1", gone=None, branches={
                R1: OnBranch("alive", "bug", watched=False),
            }),
        ),
        settings=BOTH, lines={R1: ("good", ("r1", "bug"))},
    ),
    History(
        "a branch that left the file keeps nothing open, also if one is left",
        {"good": FINE, "bug": BUG, "r1": BUG, "fix": FINE},
        (
            Step("r1", ("X",), 1), Step("bug", (), 1), Step("fix", (), 1),
            Step("good", (), 0, settings="branches: [main]"),
        ),
        (
            Expected("parse", "closed", ("bug",), "good", gone="fix", branches={
                "main": OnBranch("fixed", "bug", fixed="fix"),
                R1: OnBranch("alive", "bug", watched=False),
            }),
        ),
        settings=BOTH, lines={R1: ("bug", ("r1",))},
    ),
    History(
        "after a forced push only the new head or a later commit can be the fix",
        {"good": FINE, "main": FINE, "r1": FINE, "bug": BUG, "n1": FINE, "bug2": BUG, "n3": FINE},
        (
            Step("bug", ("X",), 1), Step("n1", (), 1, moves={R1: "bug2"}),
            Step("bug2", (), 1), Step("n3", (), 0, moves={R1: "n3"}),
        ),
        (
            Expected("parse", "closed", ("bug2",), "n1", gone="n3", branches={
                R1: OnBranch("fixed", "bug2", fixed="n3"),
            }),
        ),
        settings=BOTH,
        lines={R1: ("good", ("r1", "bug")), "topic": ("r1", ("n1", "bug2", "n3"))},
    ),
)  # fmt: skip
