"""The state of one solver's pipeline: its state files and its builds."""

from collections.abc import Iterable, Sequence

from windlass_fuzz.buckets.bucket import Bucket
from windlass_fuzz.buckets.layout import KINDS, Kind, build_key, state_key
from windlass_fuzz.state.built_combinations import BuiltCombinations, read_built
from windlass_fuzz.state.documents import (
    HEALTH,
    LEASES,
    QUEUE,
    SCHEDULE,
    STATE,
    TIMES,
    BuildQueue,
    CommitTimes,
    Health,
    Leases,
    Schedule,
    State,
)
from windlass_fuzz.state.rules import Order, fuzzing_order
from windlass_fuzz.state.state_file import Runtime, StateFile


class Pipeline:
    """The state of one solver in a bucket; `matrix` names the combinations of its file."""

    def __init__(
        self,
        bucket: Bucket,
        solver: str,
        runtime: Runtime,
        holder: str,
        matrix: Sequence[str] = (),
    ) -> None:
        self.bucket = bucket
        self.solver = solver
        self.runtime = runtime
        self.holder = holder
        self.matrix = tuple(matrix)
        self.state: StateFile[State] = StateFile(
            bucket, state_key(solver, STATE.file), STATE, runtime
        )
        self.queue: StateFile[BuildQueue] = StateFile(
            bucket, state_key(solver, QUEUE.file), QUEUE, runtime
        )
        self.schedule: StateFile[Schedule] = StateFile(
            bucket, state_key(solver, SCHEDULE.file), SCHEDULE, runtime
        )
        self.leases: StateFile[Leases] = StateFile(
            bucket, state_key(solver, LEASES.file), LEASES, runtime
        )
        self.times: StateFile[CommitTimes] = StateFile(
            bucket, state_key(solver, TIMES.file), TIMES, runtime
        )
        self.health: StateFile[Health] = StateFile(
            bucket, state_key(solver, HEALTH.file), HEALTH, runtime
        )

    def now_ms(self) -> int:
        return self.runtime.clock.now_ms()

    async def fuzzing_order(self, order: Order = "oldest") -> list[str]:
        """Returns the commits of all schedules, the one to fuzz next first."""
        schedule = await self.schedule.read()
        several = any(entry.branches for entry in schedule)
        branches = (await self.state.read()).watched if several else ()
        return fuzzing_order(schedule, branches, newest=order == "newest")

    async def has_build(self, commit: str, kinds: Iterable[Kind] = KINDS) -> bool:
        """Returns whether a commit's binaries exist, by default of both kinds.

        With a matrix, one combination of it is enough.
        """
        for kind in kinds:
            if kind == "production" and self.matrix:
                if not (await self.built(commit)).built:
                    return False
            elif not await self.bucket.exists(build_key(self.solver, kind, commit)):
                return False
        return True

    async def built(self, commit: str) -> BuiltCombinations:
        """Returns which combinations of the matrix are built, and which archives were lost."""
        made = await read_built(self.bucket, self.solver, commit)
        wanted = [name for name in self.matrix if name in made.built]
        keys = {name: build_key(self.solver, "production", commit, name) for name in wanted}
        there = [name for name, key in keys.items() if await self.bucket.exists(key)]
        lost = tuple(name for name in wanted if name not in there)
        return BuiltCombinations(built=tuple(there), failed=made.failed, lost=lost)
