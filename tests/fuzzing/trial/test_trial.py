"""The planted histories hold together, and the score says what is wrong."""

from pathlib import Path
from typing import Any

import pytest

from tests.fuzzing.trackers.servers import a_finding
from tests.fuzzing.trial.history import History
from tests.fuzzing.trial.planted import JANSSON, PROJECTS, PUSHES, Part, Planted
from tests.fuzzing.trial.score import Watch, report
from windlass_fuzz.findings.record import Finding, Fix, Origin


@pytest.mark.parametrize("planted", PROJECTS, ids=lambda one: one.source.name)
def test_each_bug_comes_and_goes(planted: Planted, tmp_path: Path) -> None:
    history = pushed(planted, tmp_path)
    git = history.repository.git
    for part, life in history.lives.items():
        bug = planted.bugs[part]
        old, new = planted.renamed
        assert len(life.began) == len(life.ended) == 1 + (part == "reverted")
        for commit in life.began:
            names = git("ls-tree", "--name-only", commit).splitlines()
            name = bug.file if bug.file in names else {old: new}[bug.file]
            before, after = (
                git("show", f"{one}:{name}").count(bug.changes[0][1])
                for one in (f"{commit}^", commit)
            )
            assert after == before + 1, part
    left = git("diff", "-M", "--shortstat", git("rev-list", "--max-parents=0", "HEAD"), "HEAD")
    assert "1 insertion(+), 1 deletion(-)" in left, "only the number of the change differs"


def test_the_score_says_what_is_wrong(tmp_path: Path) -> None:
    history = pushed(JANSSON, tmp_path, 3)
    other = history.repository.git("rev-parse", "HEAD")
    right = record(history, "masking")
    assert scored(history, right) == ("1", "right", "right")
    twice = record(history, "masking", key="b" * 16, issue="b")
    assert scored(history, right, twice)[0] == "2"
    assert scored(history, record(history, "masking", issue=""))[0] == "0"
    assert scored(history, record(history, "masking", began=other))[1].startswith("wrong")
    assert scored(history, record(history, "masking", suspects=4))[1] == "4 suspects"
    assert scored(history, record(history, "masking", ended=other))[2].startswith("wrong")
    assert scored(history, record(history, "masking", state="open"))[2] == "none"


def test_a_bug_that_lives_must_not_be_closed_and_a_fixed_one_not_reopened(tmp_path: Path) -> None:
    history = pushed(JANSSON, tmp_path, 2)
    watch = Watch(history)
    watch.look([record(history, "masking")])
    assert len(watch.wrongly_closed) == 1
    history.push(2, 3)
    watch.look([record(history, "masking")])
    assert (len(watch.wrongly_closed), len(watch.wrongly_reopened)) == (1, 0)
    watch.look([record(history, "masking", state="open")])
    assert len(watch.wrongly_reopened) == 1


def pushed(planted: Planted, folder: Path, count: int = len(PUSHES)) -> History:
    """Returns a history with its first pushes."""
    history = History(planted, folder / "repository")
    for number in range(count):
        history.push(number, number + 1)
    return history


def record(
    history: History, part: Part, began: str = "", ended: str = "", suspects: int = 1, **more: Any
) -> Finding:
    """Returns what a pipeline says that found a bug of a history, and all that is true of it."""
    life, words = history.lives[part], history.planted.bugs[part].words
    began = began or life.began[0]
    ended = ended or life.ended[0] if life.ended else began
    origin = Origin(first_bad=began, last_good="good", suspects=[began], suspect_count=suspects)
    fix = Fix(first_bad=ended, last_good=began, suspects=[ended], suspect_count=1)
    fields = {
        "title": " ".join(words), "state": "closed", "issue": "a", "origins": [origin],
        "closed_in": ended, "ends": {ended: fix},
    }  # fmt: skip
    return a_finding(**{**fields, **more})


def scored(history: History, *findings: Finding) -> tuple[str, str, str]:
    """Returns issues, origin and fix of the bug "masking" in the table."""
    text = report(Watch(history).verdicts(findings), [], 0)
    (line,) = [line for line in text.splitlines() if "| masking |" in line]
    words = [word.strip() for word in line.split("|")]
    return words[4], words[6], words[7]
