"""A world of actors, run to its end on virtual time."""

from tests.fuzzing.actors import Nothing, World
from windlass.fuzzing.bucket_dry import DryBucket
from windlass.fuzzing.state import BuildQueue, Schedule
from windlass.simulator.world.clock import VirtualClock
from windlass.simulator.world.loop import VirtualLoop

STEPS = 1_000


class Ended:
    """A world after its thousand steps, and what stands in its files."""

    def __init__(self, seed: int) -> None:
        loop = VirtualLoop(lambda _: None)
        try:
            self.world = World(DryBucket(Nothing()), VirtualClock(loop), seed)
            loop.run_until_complete(self.world.run(STEPS))
            loop.run_until_complete(self.world.settle())
            board = self.world.board()
            self.queue: BuildQueue = loop.run_until_complete(board.queue.read())
            self.schedule: Schedule = loop.run_until_complete(board.schedule.read())
            self.code = [
                c.hash for c in self.world.line.commits() if self.world.line.has_code(c.hash)
            ]
        finally:
            loop.close()
        self.journal = self.world.journal

    @property
    def standing(self) -> set[str]:
        """The commits that are somewhere in the files."""
        queue = self.queue
        return {*queue.queue, *queue.built, *queue.failed, *(e.hash for e in self.schedule)}
