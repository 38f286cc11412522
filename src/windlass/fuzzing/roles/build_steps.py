"""The steps of a builder: take a commit, say that it is built, say that it failed."""

from typing import Final, NamedTuple

from windlass.domain.errors import Conflict
from windlass.fuzzing.buckets.layout import build_log_key, check_commit
from windlass.fuzzing.state import rules
from windlass.fuzzing.state.leases import BUILD_TRIES, HeldLease, LeaseStore
from windlass.fuzzing.state.pipeline import Pipeline

LOOKS: Final = 8  # commits that were finished by others just while we took them


class TakeResult(NamedTuple):
    """What `take` found; `given_up` are commits whose builds crashed too often."""

    held: HeldLease | None
    given_up: tuple[str, ...] = ()


class BuildSteps:
    """What a builder does to the state; building itself happens between the steps."""

    def __init__(self, pipeline: Pipeline, tries: int = BUILD_TRIES) -> None:
        self._pipeline = pipeline
        self._tries = tries
        self._leases = LeaseStore(pipeline.leases, "build", pipeline.holder)

    async def take(self, length_ms: int, commit: str | None = None) -> TakeResult:
        """Lease the first commit of the queue that nobody builds, or this one.

        One whose build crashed as often as is allowed goes to `failed` instead.
        """
        given_up: list[str] = []
        for _ in range(LOOKS):
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
        """Go on building."""
        return await self._leases.renew(held, self._pipeline.now_ms(), length_ms)

    async def add(self, commit: str) -> bool:
        """Put a commit into the queue because a person asks for it."""
        checked = check_commit(commit)
        update = self._pipeline.queue.update
        return (await update(lambda queue: rules.enqueue_by_hand(queue, checked))).applied

    async def mark_built(self, commit: str, token: str | None = None) -> bool:
        """Both binaries are uploaded: from `queue` to `built`. False if it was moved before."""
        if not await self._pipeline.has_build(check_commit(commit)):
            raise Conflict(
                "binaries_missing",
                f"expected both binaries of {commit} in {self._pipeline.bucket.name}, at least one "
                "is not there; upload them first, nothing was changed",
            )
        return await self._move(commit, token, failed=False)

    async def mark_failed(self, commit: str, token: str | None = None) -> bool:
        """The build failed: from `queue` to `failed`, where it stays until put back by hand."""
        return await self._move(commit, token, failed=True)

    async def release(self, held: HeldLease) -> None:
        """Give a commit back without having built it; it is not held against it."""
        await self._leases.release(held.commit, held.token)

    async def _move(self, commit: str, token: str | None, failed: bool) -> bool:
        checked = check_commit(commit)
        if token is not None and checked in (await self._pipeline.queue.read()).queue:
            await self._leases.check(checked, token, self._pipeline.now_ms())
        rule = rules.mark_failed if failed else rules.mark_built
        written = await self._pipeline.queue.update(lambda queue: rule(queue, checked))
        await self._leases.release(checked, token)
        return written.applied

    async def _give_up(self, held: HeldLease) -> None:
        said = f"the build was begun {self._tries} times and never came to an end\n"
        await self._pipeline.bucket.put(
            build_log_key(self._pipeline.solver, held.commit), said.encode()
        )
        await self._move(held.commit, held.token, failed=True)
