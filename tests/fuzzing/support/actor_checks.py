"""Invariants of the state after any number of actors have worked on one bucket."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.fuzzing.support.actors import Journal, Spell
from windlass_fuzz.buckets.layout import state_key
from windlass_fuzz.state.documents import LEASES, QUEUE, SCHEDULE, STATE, Codec


def check_one_chain(journal: Journal) -> None:
    """S21: each write follows from exactly one other, the one before it."""
    for codec in (STATE, QUEUE, SCHEDULE, LEASES):
        written = journal.versions[state_key("toy", codec.file)]
        versions = [codec.decode(stored.body, stored.attributes)[1] for stored in written]
        nonce = ""
        # Answers of a real server may come in another order than it wrote.
        for number, version in enumerate(sorted(versions, key=lambda one: one.seq), 1):
            assert version.seq == number, (codec.file, version)
            assert version.recent[-1:] == ((nonce,) if nonce else ()), (codec.file, version)
            nonce = version.nonce


def in_order(journal: Journal, codec: Codec[Any]) -> list[Any]:
    """Returns the documents of a file in the order in which they were written."""
    written = journal.versions.get(state_key("toy", codec.file), [])
    read = [(codec.decode(s.body, s.attributes)[1].seq, json.loads(s.body)) for s in written]
    return [document for _, document in sorted(read, key=lambda one: one[0])]


def check_apart(spells: Sequence[Spell]) -> None:
    """Checks that no two actors work on one commit at the same time."""
    last: dict[str, Spell] = {}
    for spell in sorted(spells, key=lambda spell: spell.began):
        before = last.get(spell.commit)
        assert before is None or before.ended <= spell.began, (before, spell)
        last[spell.commit] = spell


def completions(journal: Journal) -> Counter[str]:
    """Returns how often each commit entered `built`, from the versions of the file."""
    moved: Counter[str] = Counter()
    before: set[str] = set()
    for document in in_order(journal, QUEUE):
        built = set(document["built"])
        moved.update(built - before)
        before = built
    return moved


def countings(journal: Journal) -> Counter[str]:
    """Returns how often each commit was counted as fuzzed, from the versions of the schedule.

    A commit that leaves while none is added left because it was counted; else it made room. A
    commit is also added if it is scheduled for one more branch.
    """
    counted: Counter[str] = Counter()
    before: dict[str, int] = {}
    places: set[tuple[str, str]] = set()
    for document in in_order(journal, SCHEDULE):
        now = {entry["hash"]: entry["fuzz_count"] for entry in document}
        for commit, count in now.items():
            counted[commit] += max(count - before.get(commit, 0), 0)
        here = {(e["hash"], name) for e in document for name in e.get("branches", [""])}
        if not here - places:
            counted.update(before.keys() - now.keys())
        before, places = now, here
    return counted


def check_completed_once(journal: Journal) -> None:
    """Checks that no build completes twice, and that no acknowledged completion is lost."""
    moved = completions(journal)
    assert max(moved.values()) == 1, moved.most_common(1)
    lost = [commit for commit, count in journal.marked.items() if count > moved[commit]]
    assert lost == []


def check_counted_once(journal: Journal) -> None:
    """Checks that each run is counted at most once, and every acknowledged one is counted."""
    counted = countings(journal)
    twice = [commit for commit, count in counted.items() if count > journal.finished[commit]]
    assert twice == []
    lost = [c for c, count in journal.acknowledged.items() if count > counted[c]]
    assert lost == []


def check_none_lost(journal: Journal, code: Sequence[str], pending: set[str]) -> None:
    """Checks that each commit with code that a manager saw is in a file, or was fuzzed."""
    fuzzed = {commit for commit, count in countings(journal).items() if count}
    # The newest ones came after the last look of a manager.
    newest = max(pending | fuzzed, key=lambda commit: int(commit[1:]))
    looked_at = code[: code.index(newest) + 1]
    assert len(looked_at) > 50
    assert [commit for commit in looked_at if commit not in pending | fuzzed] == []
