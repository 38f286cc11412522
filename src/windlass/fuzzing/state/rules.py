"""The rules of the pipeline: how commits move between queue and schedule. Pure functions."""

from collections.abc import Iterable, Sequence
from typing import Final

from windlass.fuzzing.state.documents import BuildQueue, Entry, Schedule

MINIMUM: Final = 4
EXTENSIONS: Final = (".cpp", ".cc", ".cxx", ".c", ".h", ".hpp", ".hxx", ".hh")


def touches_code(paths: Iterable[str], extensions: Sequence[str] = EXTENSIONS) -> bool:
    """Returns whether one of these files is C or C++, by its extension."""
    endings = tuple(extensions)
    return any(path.lower().endswith(endings) for path in paths)


def enqueue_new(state: BuildQueue, commits: Iterable[str]) -> BuildQueue:
    """Appends the commits that the manager found; each commit is queued this way only once."""
    known = {*state.queue, *state.built, *state.failed, *state.seen}
    fresh = tuple(dict.fromkeys(commit for commit in commits if commit not in known))
    return state._replace(queue=state.queue + fresh, seen=state.seen + fresh)


def enqueue_by_hand(state: BuildQueue, commit: str) -> BuildQueue:
    """Appends a commit that a person asked for, and removes it from `failed` and `built`."""
    if commit in state.queue:
        return state
    return state._replace(
        queue=(*state.queue, commit),
        built=without(state.built, commit),
        failed=without(state.failed, commit),
        seen=(*without(state.seen, commit), commit),
    )


def retry_failed(state: BuildQueue, commit: str) -> BuildQueue:
    """Moves a failed commit back to the end of the queue."""
    return enqueue_by_hand(state, commit) if commit in state.failed else state


def remove_by_hand(state: BuildQueue, commit: str) -> BuildQueue:
    """Removes a commit from all lists; the manager does not add it again."""
    return state._replace(
        queue=without(state.queue, commit),
        built=without(state.built, commit),
        failed=without(state.failed, commit),
    )


def mark_built(state: BuildQueue, commit: str) -> BuildQueue:
    """Moves a commit from `queue` to `built`; does nothing if someone else already moved it."""
    if commit not in state.queue:
        return state
    return state._replace(queue=without(state.queue, commit), built=(*state.built, commit))


def mark_failed(state: BuildQueue, commit: str) -> BuildQueue:
    """Moves a commit from `queue` to `failed`."""
    if commit not in state.queue:
        return state
    return state._replace(queue=without(state.queue, commit), failed=(*state.failed, commit))


def mark_bad(state: BuildQueue, commit: str) -> BuildQueue:
    """Lists a commit as failed although it was built, because its build does nothing."""
    if commit in state.failed:
        return state
    return state._replace(
        queue=without(state.queue, commit),
        built=without(state.built, commit),
        failed=(*state.failed, commit),
    )


def take_from_built(state: BuildQueue, commits: Iterable[str]) -> BuildQueue:
    """Removes commits from `built` once they are scheduled or their binaries are gone."""
    return state._replace(built=without(state.built, *commits))


def add_to_schedule(schedule: Schedule, commit: str) -> Schedule:
    """Appends a commit; once the schedule has its minimum size, removes the oldest fuzzed one."""
    if any(entry.hash == commit for entry in schedule):
        return schedule
    if len(schedule) >= MINIMUM:
        fuzzed = next((entry for entry in schedule if entry.fuzz_count > 0), None)
        schedule = tuple(entry for entry in schedule if entry is not fuzzed)
    return (*schedule, Entry(commit))


def add_by_hand(schedule: Schedule, commit: str) -> Schedule:
    """Appends a commit with a fuzz count of 0 and removes no other."""
    return (*drop_from_schedule(schedule, (commit,)), Entry(commit))


def drop_from_schedule(schedule: Schedule, commits: Iterable[str]) -> Schedule:
    """Removes commits, such as those whose binaries are gone."""
    gone = frozenset(commits)
    return tuple(entry for entry in schedule if entry.hash not in gone)


def fuzzing_order(schedule: Schedule) -> list[str]:
    """Returns the commits by fuzz count, oldest first among equals."""
    return [entry.hash for entry in sorted(schedule, key=lambda entry: entry.fuzz_count)]


def count_fuzzing(schedule: Schedule, commit: str) -> Schedule:
    """Increments a commit's count, and removes the commit if it was fuzzed enough.

    That is the case if the schedule is above its minimum size and nothing was fuzzed twice.
    """
    counted = tuple(
        entry._replace(fuzz_count=entry.fuzz_count + 1) if entry.hash == commit else entry
        for entry in schedule
    )
    if len(counted) > MINIMUM and all(entry.fuzz_count <= 1 for entry in counted):
        return drop_from_schedule(counted, (commit,))
    return counted


def without(commits: tuple[str, ...], *gone: str) -> tuple[str, ...]:
    """Returns the commits except some of them."""
    return tuple(commit for commit in commits if commit not in gone)
