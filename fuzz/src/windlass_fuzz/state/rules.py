"""The rules of the pipeline: how commits move between queue and schedule. Pure functions."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, Literal

from windlass_fuzz.state.documents import BuildQueue, Entry, Schedule

Order = Literal["oldest", "newest"]  # which of the least fuzzed commits comes first

MINIMUM: Final = 4
ONLY: Final = ""  # the branch of a solver that has only one
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


def enqueue_again(state: BuildQueue, commit: str) -> BuildQueue:
    """Appends a commit whose build has expired, unless it is in one of the lists."""
    known = commit in (*state.queue, *state.built, *state.failed)
    return state if known else enqueue_by_hand(state, commit)


def postpone(state: BuildQueue, commit: str) -> BuildQueue:
    """Moves a queued commit to the end of the queue, so that it does not hold up the others."""
    if commit not in state.queue:
        return state
    return state._replace(queue=(*without(state.queue, commit), commit))


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


def add_to_schedule(schedule: Schedule, commit: str, branch: str = ONLY) -> Schedule:
    """Appends a commit to the schedule of a branch, or adds the branch to a scheduled one.

    Once that schedule has its minimum size, its oldest fuzzed commit is removed.
    """
    known = next((entry for entry in schedule if entry.hash == commit), None)
    if known is not None and branch in branches_of(known):
        return schedule
    own = schedule_of(schedule, branch)
    fuzzed = next((entry for entry in own if entry.fuzz_count > 0), None)
    if len(own) >= MINIMUM and fuzzed is not None:
        schedule = remove_from_branch(schedule, fuzzed.hash, branch)
    named = (branch,) if branch else ()
    if known is None:
        return (*schedule, Entry(commit, branches=named))
    return tuple(
        entry._replace(branches=entry.branches + named) if entry.hash == commit else entry
        for entry in schedule
    )


def in_history_order(schedule: Schedule, order: Mapping[str, tuple[int, int]]) -> Schedule:
    """Sorts a schedule by the place of each commit in history; unknown commits come first."""
    return tuple(sorted(schedule, key=lambda entry: order.get(entry.hash, (0, 0))))


def add_by_hand(schedule: Schedule, commit: str) -> Schedule:
    """Appends a commit with a fuzz count of 0 and removes no other."""
    branches = next((entry.branches for entry in schedule if entry.hash == commit), ())
    return (*drop_from_schedule(schedule, (commit,)), Entry(commit, branches=branches))


def drop_from_schedule(schedule: Schedule, commits: Iterable[str]) -> Schedule:
    """Removes commits, such as those whose binaries are gone."""
    gone = frozenset(commits)
    return tuple(entry for entry in schedule if entry.hash not in gone)


def remove_from_branch(schedule: Schedule, commit: str, branch: str) -> Schedule:
    """Removes a commit from the schedule of one branch; others that list it keep it."""
    left: list[Entry] = []
    for entry in schedule:
        others = tuple(name for name in branches_of(entry) if name != branch)
        if entry.hash != commit:
            left.append(entry)
        elif others:
            left.append(entry._replace(branches=others))
    return tuple(left)


def branches_of(entry: Entry) -> tuple[str, ...]:
    """Returns the branches whose schedules list a commit."""
    return entry.branches or (ONLY,)


def schedule_of(schedule: Schedule, branch: str) -> Schedule:
    """Returns the schedule of one branch."""
    return tuple(entry for entry in schedule if branch in branches_of(entry))


def relabel(schedule: Schedule, watched: Sequence[str], *, named: bool) -> Schedule:
    """Removes unwatched branches; entries that name none belong to the first one.

    The only branch of a solver is not `named`: that is the documented form.
    """
    left: list[Entry] = []
    for entry in schedule:
        names = entry.branches or tuple(watched[:1])
        kept = tuple(name for name in watched if name in names)
        if kept or not watched:
            left.append(entry._replace(branches=kept if named else ()))
    return tuple(left)


def fuzzing_order(
    schedule: Schedule, branches: Sequence[str] = (), *, newest: bool = False
) -> list[str]:
    """Returns the commits by fuzz count, then the oldest of each schedule, then by branch.

    With `newest` the newest of each schedule comes first among equals.
    """
    order = list(branches)
    places: dict[str, tuple[int, int, int]] = {}
    names = dict.fromkeys(name for entry in schedule for name in branches_of(entry))
    for name in names:
        rank = order.index(name) if name in order else len(order)
        for place, entry in enumerate(schedule_of(schedule, name)):
            here = (entry.fuzz_count, -place if newest else place, rank)
            places[entry.hash] = min(places.get(entry.hash, here), here)
    return sorted(places, key=lambda commit: places[commit])


def count_fuzzing(schedule: Schedule, commit: str) -> Schedule:
    """Increments a commit's count, and removes it from each schedule where it was fuzzed enough.

    That is the case if the schedule is above its minimum size and nothing was fuzzed twice.
    """
    counted = tuple(
        entry._replace(fuzz_count=entry.fuzz_count + 1) if entry.hash == commit else entry
        for entry in schedule
    )
    done = [
        branch
        for entry in counted
        if entry.hash == commit
        for branch in branches_of(entry)
        if is_above_minimum(schedule_of(counted, branch))
    ]
    for branch in done:
        counted = remove_from_branch(counted, commit, branch)
    return counted


def is_above_minimum(own: Schedule) -> bool:
    """Returns whether a fuzzed commit may leave this schedule of a branch."""
    return len(own) > MINIMUM and all(entry.fuzz_count <= 1 for entry in own)


def without(commits: tuple[str, ...], *gone: str) -> tuple[str, ...]:
    """Returns the commits except some of them."""
    return tuple(commit for commit in commits if commit not in gone)
