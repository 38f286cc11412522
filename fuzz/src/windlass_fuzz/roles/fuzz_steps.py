"""The steps of a fuzzer: select a commit, and count that it was fuzzed."""

from typing import Final, NamedTuple

from windlass_fuzz.buckets.layout import check_commit
from windlass_fuzz.config.solver_file import Solver
from windlass_fuzz.roles.run_health import waits_for_build
from windlass_fuzz.state import rules
from windlass_fuzz.state.documents import Schedule
from windlass_fuzz.state.leases import HeldLease, LeaseStore
from windlass_fuzz.state.pipeline import Pipeline
from windlass_fuzz.state.rules import Order

ATTEMPTS: Final = 8


class SelectResult(NamedTuple):
    """The result of `select`; `removed` lists commits whose binaries are gone."""

    held: HeldLease | None
    removed: tuple[str, ...] = ()


class CountResult(NamedTuple):
    """The result of `increment`: the new count, or None if the commit left the schedule."""

    applied: bool
    fuzz_count: int | None


class FuzzSteps:
    """The state changes of a fuzzer; the fuzzing itself runs between the steps.

    Leases end with `process`, if one runs all steps.
    """

    def __init__(self, pipeline: Pipeline, solver: Solver | None = None, process: str = "") -> None:
        self._pipeline = pipeline
        self._solver = solver
        self._order: Order = "oldest" if solver is None else solver.order
        self._leases = LeaseStore(pipeline.leases, "fuzz", pipeline.holder, process)

    async def select(self, length_ms: int, commit: str | None = None) -> SelectResult:
        """Leases the given commit, or the least fuzzed one that is free and has a binary.

        With the solver file, a commit whose usable combinations were all lost waits for its next
        build.
        """
        removed: list[str] = []
        waiting: set[str] = set()
        attempts = ATTEMPTS
        while attempts:
            order = await self._pipeline.fuzzing_order(self._order)
            wanted = [c for c in order if commit in (None, c) and c not in waiting]
            token = self._pipeline.runtime.nonce()
            now_ms = self._pipeline.now_ms()
            held = await self._leases.take_first(wanted, token, now_ms, length_ms, waiting=order)
            if held is None:
                break
            if not await self._pipeline.has_build(held.commit, ("production",)):
                await self._remove(held.commit)
                removed.append(held.commit)
            elif self._solver and await waits_for_build(self._solver, self._pipeline, held.commit):
                waiting.add(held.commit)
            elif _holds(await self._pipeline.schedule.read(), held.commit):
                return SelectResult(held, tuple(removed))
            else:
                attempts -= 1  # another fuzzer has just finished it
            await self._leases.release(held.commit, held.token)
        return SelectResult(None, tuple(removed))

    async def add(self, commit: str) -> bool:
        """Adds a commit to the schedule with a count of 0 because a person asked for it."""
        checked = check_commit(commit)
        update = self._pipeline.schedule.update
        return (await update(lambda schedule: rules.add_by_hand(schedule, checked))).applied

    async def renew(self, held: HeldLease, length_ms: int) -> HeldLease:
        """Extends the lease."""
        return await self._leases.renew(held, self._pipeline.now_ms(), length_ms)

    async def increment(self, commit: str, token: str | None = None) -> CountResult:
        """Counts a run, applies the removal rule and releases the lease."""
        checked = check_commit(commit)
        if token is not None:
            await self._leases.check(checked, token, self._pipeline.now_ms())
        written = await self._pipeline.schedule.update(
            lambda schedule: rules.count_fuzzing(schedule, checked)
        )
        await self._leases.release(checked, token)
        counts = {entry.hash: entry.fuzz_count for entry in written.value}
        return CountResult(written.applied, counts.get(checked))

    async def release(self, held: HeldLease) -> None:
        """Releases a commit that was not fuzzed, without counting it."""
        await self.release_by_name(held.commit, held.token)

    async def release_by_name(self, commit: str, token: str | None) -> bool:
        """Releases a commit even without a token; returns False if nobody held it."""
        return await self._leases.release(check_commit(commit), token)

    async def _remove(self, commit: str) -> None:
        await self._pipeline.schedule.update(
            lambda schedule: rules.drop_from_schedule(schedule, (commit,))
        )


def _holds(schedule: Schedule, commit: str) -> bool:
    return any(entry.hash == commit for entry in schedule)
