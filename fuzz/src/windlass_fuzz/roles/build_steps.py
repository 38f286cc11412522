"""The steps of a builder: take a commit, mark it as built, mark it as failed."""

from typing import Final, NamedTuple

from windlass.domain.values.errors import Conflict
from windlass_fuzz.buckets.layout import build_log_key, check_commit
from windlass_fuzz.state import rules
from windlass_fuzz.state.leases import BUILD_TRIES, HeldLease, LeaseStore
from windlass_fuzz.state.pipeline import Pipeline

ATTEMPTS: Final = 8  # we may repeatedly take commits that others have just finished


class TakeResult(NamedTuple):
    """The result of `take`; `given_up` lists commits whose builds crashed too often."""

    held: HeldLease | None
    given_up: tuple[str, ...] = ()


class BuildSteps:
    """The state changes of a builder; the build itself runs between the steps.

    Leases end with `process`, if one runs all steps.
    """

    def __init__(self, pipeline: Pipeline, tries: int = BUILD_TRIES, process: str = "") -> None:
        self._pipeline = pipeline
        self._tries = tries
        self._leases = LeaseStore(pipeline.leases, "build", pipeline.holder, process)

    async def take(self, length_ms: int, commit: str | None = None) -> TakeResult:
        """Leases the given commit, or the first one in the queue that nobody is building.

        A commit whose builds crashed too often moves to `failed` instead.
        """
        given_up: list[str] = []
        for _ in range(ATTEMPTS):
            queue = (await self._pipeline.queue.read()).queue
            wanted = [c for c in queue if commit in (None, c)]
            if not wanted:
                break
            token = self._pipeline.runtime.nonce()
            held = await self._leases.take_first(
                wanted, token, self._pipeline.now_ms(), length_ms, waiting=queue
            )
            if held is None:
                break
            if held.commit not in (await self._pipeline.queue.read()).queue:
                await self._leases.release(held.commit, held.token)
            elif held.tries > self._tries:
                await self._give_up(held)
                given_up.append(held.commit)
            else:
                return TakeResult(held, tuple(given_up))
        return TakeResult(None, tuple(given_up))

    async def renew(self, held: HeldLease, length_ms: int) -> HeldLease:
        """Extends the lease."""
        return await self._leases.renew(held, self._pipeline.now_ms(), length_ms)

    async def add(self, commit: str) -> bool:
        """Adds a commit to the queue because a person asked for it."""
        checked = check_commit(commit)
        update = self._pipeline.queue.update
        return (await update(lambda queue: rules.enqueue_by_hand(queue, checked))).applied

    async def mark_built(self, commit: str, token: str | None = None) -> bool:
        """Moves a commit from `queue` to `built`; returns False if it was no longer queued.

        Raises `Conflict` unless both binaries are uploaded.
        """
        if not await self._pipeline.has_build(check_commit(commit)):
            raise Conflict(
                "binaries_missing",
                f"a binary of {commit} is missing in {self._pipeline.bucket.name}; upload both "
                "first, nothing was changed",
            )
        return await self._move(commit, token, failed=False)

    async def mark_failed(self, commit: str, token: str | None = None) -> bool:
        """Moves a commit from `queue` to `failed`, where it stays until someone retries it."""
        return await self._move(commit, token, failed=True)

    async def release(self, held: HeldLease) -> None:
        """Releases a commit that was not built; this does not count as a try."""
        await self._leases.release(held.commit, held.token)

    async def postpone(self, held: HeldLease) -> None:
        """Releases a commit that cannot be built now; others come first."""
        await self._pipeline.queue.update(lambda queue: rules.postpone(queue, held.commit))
        await self.release(held)

    async def _move(self, commit: str, token: str | None, failed: bool) -> bool:
        checked = check_commit(commit)
        if token is not None and checked in (await self._pipeline.queue.read()).queue:
            await self._leases.check(checked, token, self._pipeline.now_ms())
        rule = rules.mark_failed if failed else rules.mark_built
        written = await self._pipeline.queue.update(lambda queue: rule(queue, checked))
        await self._leases.release(checked, token)
        return written.applied

    async def _give_up(self, held: HeldLease) -> None:
        text = f"the build was started {self._tries} times and never finished\n"
        await self._pipeline.bucket.put(
            build_log_key(self._pipeline.solver, held.commit), text.encode()
        )
        await self._move(held.commit, held.token, failed=True)
