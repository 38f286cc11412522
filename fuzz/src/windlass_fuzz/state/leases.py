"""Leases: each commit is given to one worker at a time, and again if that worker dies.

A lease is a token and an expiry time. It also ends with the process that holds it, as soon as
someone on the same machine looks. A worker that finishes a commit first moves it in its
state file and then releases the lease; a worker that takes a lease then checks the state file
again. A commit that was finished in between is therefore never taken twice. Machines compare
expiry times with their own clocks, which must agree to within the length of a lease.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

import msgspec

from windlass.domain.values.errors import Conflict
from windlass_fuzz.state.documents import Lease, Leases
from windlass_fuzz.state.state_file import StateFile

Work = Literal["build", "fuzz", "triage"]

BUILD_TRIES: Final = 3


class HeldLease(NamedTuple):
    """A commit that we hold until a given time."""

    commit: str
    token: str
    until_ms: int
    tries: int


class LeaseStore:
    """The leases for one kind of work; `process` holds those that this store takes."""

    def __init__(
        self, state_file: StateFile[Leases], work: Work, holder: str, process: str = ""
    ) -> None:
        self._state_file = state_file
        self._work = work
        self._holder = holder
        self._process = process

    async def take_first(
        self,
        commits: Sequence[str],
        token: str,
        now_ms: int,
        length_ms: int,
        *,
        waiting: Sequence[str],
    ) -> HeldLease | None:
        """Leases the first of these commits that nobody holds.

        `waiting` lists all commits that still wait for work; expired leases on other commits
        are deleted.
        """
        if not commits:
            return None

        def change(leases: Leases) -> Leases:
            table = _without_expired(self._of(leases), waiting, now_ms)
            chosen = next((c for c in commits if not is_live(table.get(c), now_ms)), None)
            if chosen is None:
                return leases
            tries = table[chosen].tries + 1 if chosen in table else 1
            lease = Lease(self._holder, token, now_ms + length_ms, tries, self._process)
            return self._with(leases, {**table, chosen: lease})

        table = self._of((await self._state_file.update(change)).value)
        ours = next(((c, lease) for c, lease in table.items() if lease.token == token), None)
        return None if ours is None else HeldLease(ours[0], token, ours[1].until_ms, ours[1].tries)

    async def renew(self, held: HeldLease, now_ms: int, length_ms: int) -> HeldLease:
        """Extends a lease; raises `Conflict` if someone else now holds the commit."""

        def change(leases: Leases) -> Leases:
            table = self._of(leases)
            if not _is_ours(table.get(held.commit), held.token):
                return leases
            lease = msgspec.structs.replace(table[held.commit], until_ms=now_ms + length_ms)
            return self._with(leases, {**table, held.commit: lease})

        table = self._of((await self._state_file.update(change)).value)
        self._refuse_unless_ours(table, held.commit, held.token)
        return held._replace(until_ms=now_ms + length_ms)

    async def check(self, commit: str, token: str | None, now_ms: int) -> None:
        """Raises `Conflict` if someone else holds a commit, or without a token, if anyone does."""
        table = self._of(await self._state_file.read())
        if token is not None:
            self._refuse_unless_ours(table, commit, token)
        elif is_live(table.get(commit), now_ms):
            raise self._lost(commit, table[commit].holder)

    async def release(self, commit: str, token: str | None) -> bool:
        """Releases a commit if we still hold it; without a token, in any case."""

        def change(leases: Leases) -> Leases:
            table = self._of(leases)
            if commit not in table or (token is not None and table[commit].token != token):
                return leases
            return self._with(leases, {c: lease for c, lease in table.items() if c != commit})

        return (await self._state_file.update(change)).applied

    async def all(self) -> Mapping[str, Lease]:
        """Returns all leases, including expired ones."""
        return self._of(await self._state_file.read())

    def _of(self, leases: Leases) -> Mapping[str, Lease]:
        table: Mapping[str, Lease] = getattr(leases, self._work)
        return table

    def _with(self, leases: Leases, table: Mapping[str, Lease]) -> Leases:
        return leases._replace(**{self._work: table})

    def _refuse_unless_ours(self, table: Mapping[str, Lease], commit: str, token: str) -> None:
        if not _is_ours(table.get(commit), token):
            holder = table[commit].holder if commit in table else "nobody"
            raise self._lost(commit, holder)

    def _lost(self, commit: str, holder: str) -> Conflict:
        return Conflict(
            "lease_lost",
            f"we no longer hold the lease to {self._work} {commit}: {holder} holds it; nothing was "
            "changed",
        )


def is_live(lease: Lease | None, now_ms: int) -> bool:
    """Returns whether a lease exists, has not expired, and its process may still run."""
    return lease is not None and lease.until_ms > now_ms and not _is_gone(lease.process)


def process_name(pid: int) -> str:
    """Returns a name of a process that no other ever has: its machine's start, and its own.

    "" if this system cannot tell.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.stat('/proc/self/ns/pid').st_ino} {pid} {_state_and_start(pid)[1]}"
    except OSError:
        return ""


def _is_gone(process: str) -> bool:
    """Returns whether a process surely ended; one of another machine never counts as gone."""
    here = process_name(os.getpid()).split()
    known = process.split()
    if not known or known[:2] != here[:2]:
        return False
    try:
        os.kill(int(known[2]), 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass  # it exists, or another process has its number
    try:
        state, start = _state_and_start(int(known[2]))
    except OSError:
        return False  # some systems hide the processes of others
    return state in "ZX" or start != known[3]


def _state_and_start(pid: int) -> tuple[str, str]:
    """Returns the state of a process and its start in ticks; its program's name is between `()`."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return fields[0], fields[19]


def _is_ours(lease: Lease | None, token: str) -> bool:
    """Returns whether the lease is ours: an expired one is, until someone else takes it."""
    return lease is not None and lease.token == token


def _without_expired(
    table: Mapping[str, Lease], waiting: Sequence[str], now_ms: int
) -> Mapping[str, Lease]:
    """Drops expired leases, and their tries, of commits that no longer wait."""
    queued = frozenset(waiting)
    return {c: lease for c, lease in table.items() if c in queued or is_live(lease, now_ms)}
