"""Who works on which commit: given out to one at a time, and taken back from the dead.

A lease is a token and a time. Whoever finishes a commit moves it in its state file first and
gives the lease back after that; whoever takes a lease looks at the state file once more. So a
commit that was finished in between is never taken again. Machines compare the time of a lease
with their own clocks, which have to agree to within its length.
"""

from collections.abc import Mapping, Sequence
from typing import Final, Literal, NamedTuple

from windlass.domain.values.errors import Conflict
from windlass.fuzzing.chain import Chain
from windlass.fuzzing.state import Lease, Leases

Work = Literal["build", "fuzz"]

BUILD_TRIES: Final = 3


class Held(NamedTuple):
    """A commit that is ours until its time."""

    commit: str
    token: str
    until_ms: int
    tries: int


class LeaseDesk:
    """Leases of one kind of work."""

    def __init__(self, chain: Chain[Leases], work: Work, holder: str) -> None:
        self._chain = chain
        self._work = work
        self._holder = holder

    async def take_first(
        self,
        commits: Sequence[str],
        token: str,
        now_ms: int,
        length_ms: int,
        *,
        standing: Sequence[str],
    ) -> Held | None:
        """Lease the first of these commits that nobody holds.

        `standing` are all that wait: of others, leases that ran out are forgotten.
        """
        if not commits:
            return None

        def change(leases: Leases) -> Leases:
            table = _without_ended(self._of(leases), standing, now_ms)
            chosen = next((c for c in commits if not is_live(table.get(c), now_ms)), None)
            if chosen is None:
                return leases
            tries = table[chosen].tries + 1 if chosen in table else 1
            lease = Lease(self._holder, token, now_ms + length_ms, tries)
            return self._with(leases, {**table, chosen: lease})

        table = self._of((await self._chain.update(change)).value)
        ours = next(((c, lease) for c, lease in table.items() if lease.token == token), None)
        return None if ours is None else Held(ours[0], token, ours[1].until_ms, ours[1].tries)

    async def renew(self, held: Held, now_ms: int, length_ms: int) -> Held:
        """Hold on to a commit; raises `Conflict` if it was given to somebody else."""

        def change(leases: Leases) -> Leases:
            table = self._of(leases)
            if not _is_ours(table.get(held.commit), held.token):
                return leases
            lease = Lease(self._holder, held.token, now_ms + length_ms, held.tries)
            return self._with(leases, {**table, held.commit: lease})

        table = self._of((await self._chain.update(change)).value)
        self._refuse_unless_ours(table, held.commit, held.token)
        return held._replace(until_ms=now_ms + length_ms)

    async def check(self, commit: str, token: str | None, now_ms: int) -> None:
        """Raise `Conflict` if somebody else holds a commit; without a token, if anybody does."""
        table = self._of(await self._chain.read())
        if token is not None:
            self._refuse_unless_ours(table, commit, token)
        elif is_live(table.get(commit), now_ms):
            raise self._lost(commit, table[commit].holder)

    async def release(self, commit: str, token: str | None) -> bool:
        """Give a commit back, if it is still ours; without a token, whosever it is."""

        def change(leases: Leases) -> Leases:
            table = self._of(leases)
            if commit not in table or (token is not None and table[commit].token != token):
                return leases
            return self._with(leases, {c: lease for c, lease in table.items() if c != commit})

        return (await self._chain.update(change)).applied

    async def all(self) -> Mapping[str, Lease]:
        """What is given out, and what was and never came back."""
        return self._of(await self._chain.read())

    def _of(self, leases: Leases) -> Mapping[str, Lease]:
        return leases.build if self._work == "build" else leases.fuzz

    def _with(self, leases: Leases, table: Mapping[str, Lease]) -> Leases:
        if self._work == "build":
            return leases._replace(build=table)
        return leases._replace(fuzz=table)

    def _refuse_unless_ours(self, table: Mapping[str, Lease], commit: str, token: str) -> None:
        if not _is_ours(table.get(commit), token):
            holder = table[commit].holder if commit in table else "nobody"
            raise self._lost(commit, holder)

    def _lost(self, commit: str, holder: str) -> Conflict:
        doing = "build" if self._work == "build" else "fuzz"
        return Conflict(
            "lease_lost",
            f"expected to hold the lease to {doing} {commit}, but it belongs to {holder}; "
            "nothing was changed",
        )


def is_live(lease: Lease | None, now_ms: int) -> bool:
    """Whether somebody holds it still."""
    return lease is not None and lease.until_ms > now_ms


def _is_ours(lease: Lease | None, token: str) -> bool:
    """Past its time too: as long as nobody else has taken it, it is ours."""
    return lease is not None and lease.token == token


def _without_ended(
    table: Mapping[str, Lease], standing: Sequence[str], now_ms: int
) -> Mapping[str, Lease]:
    """Forget leases that ran out on commits which wait no longer, and how often they were tried."""
    waiting = frozenset(standing)
    return {c: lease for c, lease in table.items() if c in waiting or is_live(lease, now_ms)}
