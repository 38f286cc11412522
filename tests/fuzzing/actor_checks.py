"""What must hold after any number of actors have worked on one bucket, by what was written."""

import json
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.fuzzing.actors import Journal, Spell
from windlass.fuzzing.layout import state_key
from windlass.fuzzing.state import LEASES, QUEUE, SCHEDULE, STATE, Codec


def check_one_chain(journal: Journal) -> None:
    """S21: each write follows from exactly one, the one before it."""
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
    """The documents of a file, as they followed each other."""
    written = journal.versions[state_key("toy", codec.file)]
    read = [(codec.decode(s.body, s.attributes)[1].seq, json.loads(s.body)) for s in written]
    return [document for _, document in sorted(read, key=lambda one: one[0])]


def check_apart(spells: Sequence[Spell]) -> None:
    """No two actors on one commit at the same time."""
    last: dict[str, Spell] = {}
    for spell in sorted(spells, key=lambda spell: spell.began):
        before = last.get(spell.commit)
        assert before is None or before.ended <= spell.began, (before, spell)
        last[spell.commit] = spell


def completions(journal: Journal) -> Counter[str]:
    """How often each commit came to `built`, by the versions of the file."""
    moved: Counter[str] = Counter()
    before: set[str] = set()
    for document in in_order(journal, QUEUE):
        built = set(document["built"])
        moved.update(built - before)
        before = built
    return moved


def countings(journal: Journal) -> Counter[str]:
    """How often each commit was counted as fuzzed, by the versions of the schedule."""
    counted: Counter[str] = Counter()
    before: dict[str, int] = {}
    gone: Counter[str] = Counter()
    for document in in_order(journal, SCHEDULE):
        now = {entry["hash"]: entry["fuzz_count"] for entry in document}
        for commit, count in now.items():
            counted[commit] += max(count - before.get(commit, 0), 0)
        gone.update(set(before) - set(now))
        before = now
    return counted + gone
