"""Runs the common case of submit and sync as functions of the database, in one round trip.

When the answer to a submit is lost, its mark says whether it happened. A lost sync is repeated on
the normal path: the worker's row, which both lock, has the number of the newest sync that was
applied.
"""

from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import Any

import asyncpg
import msgspec

from windlass.domain.lifecycle.states import STATE_BY_CODE
from windlass.domain.values.errors import StoreUnavailable
from windlass.messages.sync import Assignment, Finished
from windlass.store.fast_path import (
    Arrival,
    FastPathRules,
    Limited,
    PlainKey,
    PlainSubmit,
    PlainSubmitted,
    PlainSync,
    PlainSynced,
)
from windlass.store.postgres.connections import Link
from windlass.store.postgres.failures import RETRY, outcome_unknown, was_committed
from windlass.store.postgres.news import Herald
from windlass.store.postgres.session import integers, spread, texts
from windlass.store.postgres.transactions import Transactions

MAX_TOLD = 32  # arrivals that a submit tells of by itself
NO_KEYS = ("{}",) * 5
NO_NEWS = (None, None, "{}", "{}", "{}", "{}")
_job = attrgetter("job")


class NotCommonError(asyncpg.PostgresError):
    """What `submit_plain` raises when another transaction takes its key at this moment."""

    sqlstate = "WL001"


class PostgresFastPath:
    """Implements `FastPath`."""

    def __init__(
        self, dsn: str, transactions: Transactions, herald: Herald, first: Callable[[], bool]
    ) -> None:
        """`first` returns whether this engine is the first who listens; see news.py."""
        self._dsn = dsn
        self._transactions = transactions
        self._herald = herald
        self._first = first
        self._alone = False  # nobody else listened at the last submit
        self._newest = 0  # no job of a later submit has a lower id

    async def submit(self, asked: PlainSubmit) -> PlainSubmitted | None:
        mark = began = 0
        first = self._first()
        tells = (
            not (first and self._alone)
            and len(asked.arrivals) <= MAX_TOLD
            and self._herald.may_tell()
        )
        news = _news_args(asked.arrivals, *self._herald.around()) if tells else NO_NEWS

        def args(link: Link, latest: int) -> Sequence[object]:
            nonlocal mark, began
            mark, began = link.next_mark(), latest
            return (mark, began, *_submit_args(asked), first, *news)

        async def resolve(link: Link, error: BaseException) -> Sequence[Any] | None:
            """Returns what the lost answer was; None: it never happened."""
            committed = await was_committed(self._dsn, link, mark, began)
            if committed is False:
                return None
            found = await self._jobs(mark) if committed else ()
            if not found:
                raise outcome_unknown(error) from error
            return (found[0][0], [job for _, job in found], False, None)

        try:
            row = await self._transactions.call("submit_plain", args, resolve)
        except (NotCommonError, *RETRY):
            return None
        if row is None or row[0] is None:
            return None
        now, ids, self._alone, event = row
        self._transactions.note(event, now)
        return self._submitted(now, ids, tells or self._alone)

    async def sync(self, asked: PlainSync, rules: FastPathRules) -> PlainSynced | None:
        gated = asked.limited is not None

        def args(_link: Link, latest: int) -> Sequence[object]:
            plain = (latest, *_sync_args(asked, rules))
            return (*_limit_args(asked.limited or ()), *plain) if gated else plain

        try:
            name = "sync_gated" if gated else "sync_plain"
            row = await self._transactions.call(name, args, _say_again)
        except (NotCommonError, *RETRY):
            return None
        if row is None or row[0] is None:
            return None
        self._transactions.note(row[-1], row[0])
        return _synced(self._transactions.tell_time(row[0]), asked.claim.state, row[:-1])

    async def _jobs(self, mark: int) -> Sequence[Any]:
        """Returns (time, job) of what a committed submit wrote, if that can be read."""
        try:
            return await self._transactions.fetch("jobs_of_commit", mark, self._newest)
        except StoreUnavailable:
            return ()

    def _submitted(self, now: int, ids: Sequence[int], told: bool) -> PlainSubmitted:
        self._newest = max(self._newest, ids[-1])
        return PlainSubmitted(self._transactions.tell_time(now), ids, told)


async def _say_again(_link: Link, _error: BaseException) -> None:
    """Lets a sync whose answer is lost run on the normal path, whether it happened or not."""


def _submit_args(asked: PlainSubmit) -> Sequence[object]:
    _, shapes, _, flags, ranks, bases, _, _, _, _, timeouts, idles, _, specs = zip(
        *asked.rows, strict=True
    )
    names, depths = zip(*sorted(asked.depths.items()), strict=True)
    return (
        len(specs),
        *spread("iiiiiio", [shapes, flags, ranks, bases, timeouts, idles, specs]),
        texts(names),
        integers(depths),
        *(_key_args(asked.keys) if asked.keys else NO_KEYS),
    )


def _key_args(keys: Sequence[PlainKey]) -> Sequence[object]:
    return (
        texts([key.namespace for key in keys]),
        texts([key.key for key in keys]),
        texts([key.digest for key in keys]),
        integers([key.first + 1 for key in keys]),  # arrays of SQL begin with 1
        integers([key.jobs for key in keys]),
    )


def _news_args(arrivals: Sequence[Arrival], before: str, behind: str) -> Sequence[object]:
    shapes, ranks, firsts, counts = zip(*arrivals, strict=True)
    places = [first + 1 for first in firsts]
    return (before, behind, *map(integers, (shapes, ranks, places, counts)))


def _sync_args(asked: PlainSync, rules: FastPathRules) -> Sequence[object]:
    claim = asked.claim
    columns = zip(*claim.probes, strict=True) if claim.probes else ((),) * 5
    shapes, ranks, jobs, counts, depths = columns
    return (
        asked.worker,
        asked.incarnation,
        asked.seq,
        asked.again,
        asked.received,
        asked.described,
        rules.beat_ms,
        claim.want,
        asked.holds,
        claim.state,
        claim.slack_ms,
        claim.least_attempt,
        claim.refreshed_at,
        rules.bound_ttl_ms,
        rules.refresh_ms,
        None if claim.following is None else integers(claim.following),
        *map(integers, (shapes, ranks, jobs, counts)),
        texts(depths),
        *_done_args(asked.done),
    )


def _limit_args(limited: Sequence[Limited]) -> Sequence[object]:
    return integers([it.shape for it in limited]), integers([it.limit for it in limited])


def _done_args(done: Sequence[Finished]) -> Sequence[object]:
    """Returns them ascending by job, in the one order in which all lock."""
    if not done:
        return ("{}", "{}", "{}", None, 0, None, None)
    ordered = sorted(done, key=_job)
    columns: list[Sequence[object]] = [
        [item.attempt for item in ordered],
        [item.exit_code for item in ordered],
        [item.result for item in ordered],
    ]
    return (integers([item.job for item in ordered]), *spread("iio", columns))


def _synced(now: int, state: int, row: Sequence[Any]) -> PlainSynced:
    """Returns what `sync_plain` answered; its arrays are NULL where there is nothing."""
    _, asked, looked, jobs, attempts, leases, timeouts, idles, specs, *rest = row
    cursor_ranks, cursor_jobs, *left = rest[:5]
    held = rest[5]
    shapes, freed = rest[6:] or (None, None)
    granted: list[Assignment] = []
    if jobs:
        columns = zip(jobs, attempts, leases, timeouts, idles, specs, strict=True)
        name, raw = str(STATE_BY_CODE[state]), msgspec.Raw
        granted = [
            Assignment(job, attempt, lease, name, timeout_ms, idle_ms, raw(spec))
            for job, attempt, lease, timeout_ms, idle_ms, spec in columns
        ]
    cursors = [
        None if rank is None else (rank, job)
        for rank, job in zip(cursor_ranks or (), cursor_jobs or (), strict=True)
    ]
    return PlainSynced(
        now, asked, looked, granted, cursors, _rows(left), held, shapes or (), freed or ()
    )


def _rows(columns: Sequence[Any]) -> list[Any]:
    return list(zip(*columns, strict=True)) if columns[0] else []
