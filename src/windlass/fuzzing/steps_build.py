"""The steps of a builder: take a commit, say that it is built, say that it failed."""

from typing import Final, NamedTuple

from windlass.domain.values.errors import Conflict
from windlass.fuzzing import rules
from windlass.fuzzing.board import Board
from windlass.fuzzing.layout import build_log_key, check_commit
from windlass.fuzzing.leases import BUILD_TRIES, Held, LeaseDesk

LOOKS: Final = 8  # commits that were finished by others just while we took them


class Took(NamedTuple):
    """What `take` found; `given_up` are commits whose builds crashed too often."""

    held: Held | None
    given_up: tuple[str, ...] = ()


class BuildSteps:
    """What a builder does to the state; building itself happens between the steps."""

    def __init__(self, board: Board, tries: int = BUILD_TRIES) -> None:
        self._board = board
        self._tries = tries
        self._desk = LeaseDesk(board.leases, "build", board.holder)

    async def take(self, length_ms: int, commit: str | None = None) -> Took:
        """Lease the first commit of the queue that nobody builds, or this one.

        One whose build crashed as often as is allowed goes to `failed` instead.
        """
        given_up: list[str] = []
        for _ in range(LOOKS):
            queue = (await self._board.queue.read()).queue
            wanted = [c for c in queue if commit in (None, c)]
            if not wanted:
                break
            token = self._board.around.nonce()
            held = await self._desk.take_first(
                wanted, token, self._board.now_ms(), length_ms, standing=queue
            )
            if held is None:
                break
            if held.commit not in (await self._board.queue.read()).queue:
                await self._desk.release(held.commit, held.token)
            elif held.tries > self._tries:
                await self._give_up(held)
                given_up.append(held.commit)
            else:
                return Took(held, tuple(given_up))
        return Took(None, tuple(given_up))

    async def renew(self, held: Held, length_ms: int) -> Held:
        """Go on building."""
        return await self._desk.renew(held, self._board.now_ms(), length_ms)

    async def add(self, commit: str) -> bool:
        """Put a commit into the queue because a person asks for it."""
        checked = check_commit(commit)
        update = self._board.queue.update
        return (await update(lambda queue: rules.enqueue_by_hand(queue, checked))).applied

    async def mark_built(self, commit: str, token: str | None = None) -> bool:
        """Both binaries are uploaded: from `queue` to `built`. False if it was moved before."""
        if not await self._board.has_build(check_commit(commit)):
            raise Conflict(
                "binaries_missing",
                f"expected both binaries of {commit} in {self._board.bucket.name}, at least one "
                "is not there; upload them first, nothing was changed",
            )
        return await self._move(commit, token, failed=False)

    async def mark_failed(self, commit: str, token: str | None = None) -> bool:
        """The build failed: from `queue` to `failed`, where it stays until put back by hand."""
        return await self._move(commit, token, failed=True)

    async def release(self, held: Held) -> None:
        """Give a commit back without having built it; it is not held against it."""
        await self._desk.release(held.commit, held.token)

    async def _move(self, commit: str, token: str | None, failed: bool) -> bool:
        checked = check_commit(commit)
        if token is not None and checked in (await self._board.queue.read()).queue:
            await self._desk.check(checked, token, self._board.now_ms())
        rule = rules.mark_failed if failed else rules.mark_built
        written = await self._board.queue.update(lambda queue: rule(queue, checked))
        await self._desk.release(checked, token)
        return written.applied

    async def _give_up(self, held: Held) -> None:
        said = f"the build was begun {self._tries} times and never came to an end\n"
        await self._board.bucket.put(build_log_key(self._board.solver, held.commit), said.encode())
        await self._move(held.commit, held.token, failed=True)
