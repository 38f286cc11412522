"""The rules of the pipeline: what moves where, and what goes. Values in, values out."""

from collections.abc import Iterable, Sequence
from typing import Final

from windlass.fuzzing.state.documents import BuildQueue, Entry, Schedule

MINIMUM: Final = 4
EXTENSIONS: Final = (".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".hxx", ".hh")


def touches_code(paths: Iterable[str], extensions: Sequence[str] = EXTENSIONS) -> bool:
    """Whether one of these files is C++, by its extension."""
    endings = tuple(extensions)
    return any(path.lower().endswith(endings) for path in paths)


def enqueue_new(state: BuildQueue, commits: Iterable[str]) -> BuildQueue:
    """Append what the manager found, once in the life of each commit."""
    known = {*state.queue, *state.built, *state.failed, *state.seen}
    fresh = tuple(dict.fromkeys(commit for commit in commits if commit not in known))
    return state._replace(queue=state.queue + fresh, seen=state.seen + fresh)


def enqueue_by_hand(state: BuildQueue, commit: str) -> BuildQueue:
    """Append what a person asks for: taken out of `failed` and `built`, and built anew."""
    if commit in state.queue:
        return state
    return state._replace(
        queue=(*state.queue, commit),
        built=without(state.built, commit),
        failed=without(state.failed, commit),
        seen=(*without(state.seen, commit), commit),
    )


def retry_failed(state: BuildQueue, commit: str) -> BuildQueue:
    """Put a failed commit back at the end of the queue."""
    return enqueue_by_hand(state, commit) if commit in state.failed else state


def remove_by_hand(state: BuildQueue, commit: str) -> BuildQueue:
    """Forget a commit wherever it stands; the manager does not bring it back."""
    return state._replace(
        queue=without(state.queue, commit),
        built=without(state.built, commit),
        failed=without(state.failed, commit),
    )


def mark_built(state: BuildQueue, commit: str) -> BuildQueue:
    """From `queue` to `built`; a commit that is not in the queue was dealt with by others."""
    if commit not in state.queue:
        return state
    return state._replace(queue=without(state.queue, commit), built=(*state.built, commit))


def mark_failed(state: BuildQueue, commit: str) -> BuildQueue:
    """From `queue` to `failed`."""
    if commit not in state.queue:
        return state
    return state._replace(queue=without(state.queue, commit), failed=(*state.failed, commit))


def take_from_built(state: BuildQueue, commits: Iterable[str]) -> BuildQueue:
    """Forget built commits, once they stand in the schedule or their binaries are gone."""
    return state._replace(built=without(state.built, *commits))


def add_to_schedule(schedule: Schedule, commit: str) -> Schedule:
    """Append a commit; at the minimum size or above it the oldest fuzzed one goes for it."""
    if any(entry.hash == commit for entry in schedule):
        return schedule
    if len(schedule) >= MINIMUM:
        fuzzed = next((entry for entry in schedule if entry.fuzz_count > 0), None)
        schedule = tuple(entry for entry in schedule if entry is not fuzzed)
    return (*schedule, Entry(commit))


def add_by_hand(schedule: Schedule, commit: str) -> Schedule:
    """Append a commit as never fuzzed; nothing goes for it."""
    return (*drop_from_schedule(schedule, (commit,)), Entry(commit))


def drop_from_schedule(schedule: Schedule, commits: Iterable[str]) -> Schedule:
    """Without these commits, such as those whose binaries are gone."""
    gone = frozenset(commits)
    return tuple(entry for entry in schedule if entry.hash not in gone)


def fuzzing_order(schedule: Schedule) -> list[str]:
    """Least fuzzed first, among equals the oldest."""
    return [entry.hash for entry in sorted(schedule, key=lambda entry: entry.fuzz_count)]


def count_fuzzing(schedule: Schedule, commit: str) -> Schedule:
    """One more for a commit; above the minimum, with nothing fuzzed twice, it goes."""
    counted = tuple(
        entry._replace(fuzz_count=entry.fuzz_count + 1) if entry.hash == commit else entry
        for entry in schedule
    )
    if len(counted) > MINIMUM and all(entry.fuzz_count <= 1 for entry in counted):
        return drop_from_schedule(counted, (commit,))
    return counted


def without(commits: tuple[str, ...], *gone: str) -> tuple[str, ...]:
    """These commits, less some."""
    return tuple(commit for commit in commits if commit not in gone)
