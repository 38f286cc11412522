"""Moves of the differential test: tokens, codes, files, lists and retention."""

from collections.abc import Sequence

from tests.store.conformance.moves import JOBS, TIMES, Dice, Maker, Move
from tests.store.conformance.rows import artifact, code, log_row, name_row, token, upload
from windlass.domain.lifecycle.states import State
from windlass.domain.rows.events import BaselineRow
from windlass.domain.rows.files import Dynamic, Progress
from windlass.domain.rows.views import JobFilter
from windlass.store.sql.snapshot import Snapshot

STATES = [state.code for state in State]


def add_token(dice: Dice, held: Snapshot) -> Move:
    name = f"t{len(held.tokens)}"
    row = token(
        name, worker=dice.number(0, 2), incarnation=dice.number(0, 1), parent=dice.number(0, 1)
    )
    return Move("access", "insert", (row._replace(namespaces=tuple(dice.some("abä"))),))


def use_access(dice: Dice, held: Snapshot) -> Move:
    return dice.one(
        [
            Move("access", "by_digest", (dice.one(["digest of t0", "digest of t1"]),)),
            Move("access", "all", ()),
            Move("access", "end_sessions", (dice.number(0, 3),)),
            Move("access", "lock", ()),
            Move("access", "remove_of_worker", (dice.number(0, 3),)),
            Move("access", "revoke", (dice.number(1, 3), dice.one(TIMES))),
            Move("access", "expire", (dice.number(1, 3), dice.one(TIMES))),
            Move("access", "touch", ({dice.number(1, 3): dice.one(TIMES)},)),
            Move("access", "trim_sessions", (dice.one(TIMES), dice.number(1, 2))),
        ]
    )


def use_codes(dice: Dice, held: Snapshot) -> Move:
    return dice.one(
        [
            Move("access", "by_id", (dice.number(1, 3),)),
            Move("access", "trim_codes", (dice.one(TIMES), dice.number(1, 2))),
            Move("access", "use_code", (dice.one("abc"), dice.one(TIMES))),
            Move("access", "use_link", (dice.one("abc"), dice.one(TIMES))),
        ]
    )


def add_code(dice: Dice, held: Snapshot) -> Move:
    row = code(dice.one("abc"), expires_at=dice.one(TIMES), token=dice.number(0, 1))
    return Move("access", "add_code", (row,))


def put_files(dice: Dice, held: Snapshot) -> Move:
    job = dice.one(JOBS)
    attempt = dice.number(1, 3)
    rows = [artifact(job, name, attempt=attempt) for name in dice.some("abÄ")]
    return dice.one(
        [
            Move("files", "put_log", (log_row(job, attempt, bytes=dice.number(0, 9)),)),
            Move("files", "add_artifacts", (rows,)),
            Move("files", "set_name", (name_row(dice.one("nmÄ"), job=job),)),
            Move("files", "put_progress", (Progress(job, attempt, b"1", dice.one(TIMES)),)),
            Move("files", "put_dynamic", ([Dynamic(job, attempt, b"{}")],)),
        ]
    )


def ask_files(dice: Dice, held: Snapshot) -> Move:
    some = dice.some(JOBS)
    return dice.one(
        [
            Move("files", "log", (dice.one(JOBS), dice.number(1, 3))),
            Move("files", dice.one(["logs", "artifacts", "progress", "dynamic"]), (some,)),
            Move("files", "names", (dice.one([None, "team", "other"]),)),
            Move("files", "lookup", ("team", dice.some("nmÄ"))),
            Move("files", "referenced", (_digests(dice.some("abnm")),)),
        ]
    )


def use_uploads(dice: Dice, held: Snapshot) -> Move:
    row = upload(dice.one("abn"), used_at=dice.one(TIMES))
    return dice.one(
        [
            Move("files", "put_upload", (row,)),
            Move("files", "put_upload", (row._replace(namespace="other"),)),
            Move("files", "add_artifacts", ([artifact(dice.one(JOBS), "a", attempt=0)],)),
            Move("files", "uploads", (dice.one([None, "team", "other"]),)),
            Move("files", "use_uploads", ("team", _digests(dice.some("abn")), dice.one(TIMES))),
            Move("files", "trim_uploads", (dice.one(TIMES), dice.number(1, 2))),
        ]
    )


def _digests(names: Sequence[str]) -> list[str]:
    return [f"sha of {name}" for name in names]


def show(dice: Dice, held: Snapshot) -> Move:
    wanted = JobFilter(
        states=tuple(dice.some(STATES)),
        workflow=dice.one([None, None, 2]),
        dead=dice.one([False, False, True]),
    )
    return dice.one(
        [
            Move("views", "job", (dice.one(JOBS),)),
            Move("views", "some", (dice.some(JOBS),)),
            Move("views", "jobs", (wanted, dice.one([0, 0, 8]), dice.number(1, 9))),
            Move("views", "workers_with_counts", ()),
            Move("views", "queue_depths", ()),
            Move("views", "census", (1_000,)),
        ]
    )


def retain(dice: Dice, held: Snapshot) -> Move:
    some = dice.some(range(1, 5))
    return dice.one(
        [
            Move("retention", "ended", (dice.number(0, 5), dice.number(500, 515), 4)),
            Move("retention", "records", (dice.some(JOBS),)),
            Move("retention", "baseline", (dice.number(0, 2), some)),
            Move("retention", "put_baseline", ([BaselineRow(1, n, dice.one("ab")) for n in some],)),
            Move("retention", "drop_baseline", (1, some)),
            Move("retention", "remove_workflows", (some,)),
        ]
    )


def remove_jobs(dice: Dice, held: Snapshot) -> Move:
    """Only ended jobs that stand in no place, as the engine does."""
    standing = {row.job for place in (held.waits, held.due) for row in place}
    standing |= {row.job for place in (held.parked, held.ready, held.leases) for row in place}
    ended = [row.facts.id for row in held.jobs if row.facts.state]
    return Move("retention", "remove_jobs", (dice.some([j for j in ended if j not in standing]),))


MOVES: list[Maker] = [use_access, use_codes, put_files, ask_files, use_uploads, show, retain]

LONE_MOVES: list[Maker] = [add_token, add_code, remove_jobs]

OPENING: list[Maker] = [add_token, put_files, put_files]
