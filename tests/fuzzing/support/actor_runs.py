"""Runs a world of actors to its end, on virtual time."""

from tests.fuzzing.support.actors import Nothing, World
from windlass.simulator.virtual_loop import VirtualLoop
from windlass.simulator.world import VirtualClock
from windlass_fuzz.buckets.dry_run import DryRunBucket
from windlass_fuzz.state.documents import BuildQueue, Schedule, State

STEPS = 1_000


class ActorRun:
    """A world after its thousand steps, and the content of its files."""

    def __init__(self, seed: int, *branches: str) -> None:
        loop = VirtualLoop(lambda _: None)
        try:
            self.world = World(DryRunBucket(Nothing()), VirtualClock(loop), seed, branches)
            loop.run_until_complete(self.world.run(STEPS))
            loop.run_until_complete(self.world.wind_down())
            pipeline = self.world.pipeline()
            self.queue: BuildQueue = loop.run_until_complete(pipeline.queue.read())
            self.schedule: Schedule = loop.run_until_complete(pipeline.schedule.read())
            self.state: State = loop.run_until_complete(pipeline.state.read())
            self.code = [
                c.hash for c in self.world.line.commits() if self.world.line.has_code(c.hash)
            ]
        finally:
            loop.close()
        self.journal = self.world.journal

    @property
    def pending(self) -> set[str]:
        """Returns the commits that are in any of the files."""
        queue = self.queue
        return {*queue.queue, *queue.built, *queue.failed, *(e.hash for e in self.schedule)}
