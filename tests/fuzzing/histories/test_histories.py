"""Planted histories: no live bug is closed, no innocent commit is blamed, few duplicates."""

import resource
from pathlib import Path

import pytest

from tests.fuzzing.histories import (
    bookkeeping,
    branches,
    dating,
    failures,
    flags,
    matrix,
    merges,
    naming,
    telling_apart,
)
from tests.fuzzing.histories.planted import Expected, History, OnBranch, PlantedWorld
from tests.support.forms import LONG
from tests.support.running import run
from windlass_fuzz.findings.record import Finding, excerpt_of
from windlass_fuzz.findings.report import end_text

ALL = (
    *bookkeeping.HISTORIES,
    *branches.HISTORIES,
    *dating.HISTORIES,
    *failures.HISTORIES,
    *flags.HISTORIES,
    *merges.HISTORIES,
    *naming.HISTORIES,
    *telling_apart.HISTORIES,
)
# LeakSanitizer does not start where the address space is limited (`ulimit -v`).
LIMITED = resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY
PLAYED = [
    one
    for one in ALL
    if (LONG or not one.long) and not (LIMITED and "sanitize=leak" in one.compiler)
]


@pytest.mark.parametrize("history", PLAYED, ids=lambda history: history.name)
def test_what_was_planted_is_what_is_known(history: History, tmp_path: Path) -> None:
    world = PlantedWorld(tmp_path, history)
    run(world.run())
    found = run(world.findings())
    assert len(found) <= len(history.expected) + history.duplicates, [f.title for f in found]
    for expected in history.expected:
        fitting = [one for one in found if any(expected.words in name for name in one.names)]
        assert fitting, f"no finding with {expected.words}: {[f.title for f in found]}"
        for one in fitting:
            check(world, one, expected)
    if history.duplicates and len(found) > len(history.expected):
        assert len({one.group or one.key for one in found}) == len(history.expected)


@pytest.mark.parametrize("history", matrix.HISTORIES, ids=lambda history: history.name)
def test_what_was_planted_in_a_matrix_is_what_is_known(
    history: matrix.MatrixHistory, tmp_path: Path
) -> None:
    world = matrix.MatrixWorld(tmp_path, history)
    run(world.run())
    found = run(world.findings())
    assert len(found) == len(history.expected), [f.title for f in found]
    for expected in history.expected:
        (one,) = [f for f in found if any(expected.words in name for name in f.names)]
        check(world, one, expected)


def check(world: PlantedWorld, one: Finding, expected: Expected) -> None:
    since = [world.name_of(origin.first_bad) for origin in one.origins]
    newest = one.origins[-1]
    assert one.state == expected.state, (one.title, one.unsure)
    assert since == list(expected.since), "the wrong commit is blamed"
    assert world.name_of(newest.last_good) == expected.good
    assert newest.exact == expected.exact, (newest.suspects, newest.assumed)
    stored = world.folder / "bucket" / f"solvers/scripted/findings/{one.key}/{one.input}"
    assert one.excerpt == excerpt_of(stored.read_bytes()), "the record shows another input"
    assert one.output_of == one.input, "the record shows the output of another input"
    assert newest.input in {kept.name for kept in one.inputs}, "the deciding input is not kept"
    suspects = {world.name_of(commit) for commit in newest.suspects}
    assert expected.suspects is None or suspects == set(expected.suspects)
    assert world.name_of(one.closed_in) == expected.gone
    assert expected.blamed in (None, world.name_of(one.introduced_by))
    assert expected.end in (None, said_about_the_end(world, one))
    assert expected.kind in (None, one.kind)
    known = {
        branch.name: OnBranch(
            branch.state, world.name_of(branch.since), world.name_of(branch.merge),
            world.name_of(branch.fixed_in), branch.watched,
        )
        for branch in one.branches
    }  # fmt: skip
    assert known == expected.branches


def said_about_the_end(world: PlantedWorld, one: Finding) -> str:
    """Returns what is said about the fix, with the names of commits in the history."""
    text = end_text(one, str(one.closed_in))
    for name, full in world.names.items():
        text = text.replace(full, name)
    return text


def test_there_are_enough_histories_and_each_has_its_name() -> None:
    names = [history.name for history in (*ALL, *matrix.HISTORIES)]
    assert len(set(names)) == len(names) >= 25
