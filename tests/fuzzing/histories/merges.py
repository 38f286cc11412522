"""Histories about merges: what they bring, what they combine, and what they lose."""

from tests.fuzzing.histories.bookkeeping import BUG
from tests.fuzzing.histories.planted import FINE, Expected, History, Step

LOST = {"good": FINE, "bug": BUG, "innocent": BUG, "fix": FINE, "merge-back": BUG}
SIDE = {"side": ("bug", ("innocent",))}

HISTORIES = (
    History(
        "a fix on a branch that nobody watches closes nothing before it is merged",
        {"good": FINE, "bug": BUG, "topic": FINE, "later": BUG, "merge-fix": FINE},
        (Step("bug", ("X",), 1), Step("topic", (), 1), Step("later", (), 1),
         Step("merge-fix", (), 0)),
        (Expected("parse", "closed", ("bug",), "good", gone="merge-fix"),),
        lines={"side": ("bug", ("topic",))}, merges={"merge-fix": "topic"},
    ),
    History(
        "a merge that loses a fix is to blame, and not the branch that began with the bug",
        LOST,
        (Step("merge-back", ("X",), 1),),
        (Expected("parse", since=("merge-back",), good="fix"),),
        lines=SIDE, merges={"merge-back": "innocent"},
    ),
    History(
        "a merge that loses a fix is another time that the bug came",
        LOST,
        (Step("bug", ("X",), 1), Step("fix", (), 0), Step("merge-back", ("X",), 1)),
        (Expected("parse", since=("bug", "merge-back"), good="fix"),),
        lines=SIDE, merges={"merge-back": "innocent"},
    ),
    History(
        "if nobody knows whether a branch began with the bug, it is not blamed alone",
        LOST,
        (Step("merge-back", ("X",), 1),),
        (Expected("parse", since=("innocent",), good="fix", exact=False),),
        lines=SIDE, merges={"merge-back": "innocent"}, unbuilt=("bug",),
    ),
    History(
        "a merge that loses a fix is not blamed alone if its own line has commits without builds",
        {"good": FINE, "bug": BUG, "innocent": BUG, "fix": FINE, "later": FINE, "merge-back": BUG},
        (Step("merge-back", ("X",), 1),),
        (Expected("parse", since=("merge-back",), good="fix", exact=False),),
        lines=SIDE, merges={"merge-back": "innocent"}, unbuilt=("later",),
    ),
    History(
        "a branch that brings a bug which its base lacks is to blame, though main fixed it",
        {"good": FINE, "bug": BUG, "fix": FINE, "guilty": BUG, "merge-bug": BUG},
        (Step("bug", ("X",), 1), Step("fix", (), 0), Step("merge-bug", ("X",), 1)),
        (Expected("parse", since=("bug", "guilty"), good="good"),),
        lines={"side": ("good", ("guilty",))}, merges={"merge-bug": "guilty"},
    ),
    History(
        "a merge of two lines without the bug is itself to blame",
        {"good": FINE, "one": FINE, "other": FINE, "conflict": BUG},
        (Step("conflict", ("X",), 1),),
        (Expected("parse", since=("conflict",), good="other"),),
        lines={"side": ("good", ("one",))}, merges={"conflict": "one"},
    ),
)  # fmt: skip
