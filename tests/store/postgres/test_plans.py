"""The plans of hot statements on full tables: by index, in the order of the input.

The tables are large enough that a planner left to itself would read them as a whole.
"""

import asyncio
import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import asyncpg
import pytest

from tests.store.postgres.conftest import OpenStore
from tests.support.postgres import PostgresServer
from windlass.clock import RealChance
from windlass.domain.config import Config
from windlass.domain.job.job import JobSpec
from windlass.domain.rows.series import SeriesKind
from windlass.engine.engine import Engine
from windlass.engine.fleet.enrolment import Enrolment
from windlass.messages.sync import Finished, SyncRequest
from windlass.store.postgres import migrate
from windlass.store.postgres.connections import open_connection
from windlass.store.postgres.session import QUERIES

JOBS = 100_000
FINISHED = 100
FILL = [
    """INSERT INTO jobs (id, shape, rank, base, adjustment, flags, age_from, created_at, spec)
       SELECT i, i % 50, i, 0, 0, 0, i, i, 'x' FROM generate_series(1, 100000) i""",
    """INSERT INTO ready (shape, rank, job, attempt, limit_id)
       SELECT i % 50, i, i, 0, nullif(i % 20, 0) FROM generate_series(1, 60000) i""",
    """INSERT INTO parked (limit_id, shape, rank, job, attempt)
       SELECT i % 20, i % 50, i, i, 0 FROM generate_series(60001, 70000) i""",
    """INSERT INTO waits (job, unmet, manual, not_before, age_from, shape, rank, attempt)
       SELECT i, 2, 0, 0, 0, i % 50, i, 0 FROM generate_series(70001, 80000) i""",
    """INSERT INTO due (job, at, state, shape, rank, attempt)
       SELECT i, i, 7, i % 50, i, 0 FROM generate_series(80001, 90000) i""",
    """INSERT INTO leases (job, attempt, lease, worker, incarnation, state, assigned_at,
                           started_at, activity_at, deadline_at)
       SELECT i, 1, i, i % 1000, 1, 4, i, i, 0, i FROM generate_series(90001, 100000) i""",
    """INSERT INTO events (at, kind, job, attempt, "from", "to")
       SELECT i, 1, i, 0, 0, 2 FROM generate_series(1, 100000) i""",
    """INSERT INTO dependents (job, chunk, edges)
       SELECT i, 0, ARRAY[i * 2] FROM generate_series(1, 20000) i""",
    """INSERT INTO keys (namespace, key, job, digest)
       SELECT 'team', i::text, i, 'x' FROM generate_series(1, 20000) i""",
    """INSERT INTO workers (id, incarnation, seq, last_seen, last_lease, enrolled_at, slots,
                            status, name, static, dynamic)
       SELECT i, 1, 1, i, i, i, 1, 1, 'w' || i, '{}', '{}' FROM generate_series(1, 5000) i""",
    """INSERT INTO workflows (id, created_at, finished_at, run, flags, state, namespace, name,
                              counts)
       SELECT i, i, 0, 1, 0, 1, 'team', 'x', array_fill(0, ARRAY[13])
       FROM generate_series(1, 20000) i""",
    """INSERT INTO limits (id, max, leased, namespace, key)
       SELECT i, 1, 0, 'team', i::text FROM generate_series(1, 5000) i""",
    """INSERT INTO tokens (worker, created_at, expires_at, revoked_at, incarnation, last_used_at,
                           name, digest, role, kind, namespaces, parent)
       SELECT 0, 0, 0, 0, 0, 0, 'x', i::text, 'viewer', 'token', '{}', 0
       FROM generate_series(1, 5000) i""",
    """INSERT INTO logs (job, bytes, gap_from, gap_to, attempt, state)
       SELECT i, 0, 0, 0, 1, 1 FROM generate_series(1, 20000) i""",
    """INSERT INTO artifacts (job, size, attempt, name, sha256, content_type)
       SELECT i, 0, 1, 'x', i::text, '' FROM generate_series(1, 20000) i""",
    """INSERT INTO names (job, set_at, namespace, name, artifact, sha256)
       SELECT i, 0, 'team', i::text, 'x', i::text FROM generate_series(1, 5000) i""",
    "INSERT INTO bad_ends (job, state) SELECT i, 9 FROM generate_series(1, 5000) i",
    "UPDATE jobs SET workflow = id % 2000 WHERE id <= 20000",
    """INSERT INTO shapes (id, digest, body)
       SELECT i, i::text, 'x' FROM generate_series(1, 5000) i""",
    """INSERT INTO schedules (id, next_at, last_slot, created_at, updated_at, catch_up_limit,
                              paused, namespace, name, cron, zone, overlap, catch_up, body)
       SELECT i, i, 0, 0, 0, 1, 0, 'team', i::text, '', '', '', '', ''
       FROM generate_series(1, 5000) i""",
    """INSERT INTO schedule_runs (id, schedule, slot, workflow, created_at, changed_at, state)
       SELECT i, i % 100, i, i, i, i, CASE WHEN i % 500 = 0 THEN i / 500 % 2 + 1 ELSE 3 END
       FROM generate_series(1, 50000) i""",
    """INSERT INTO pool_workers (id, pool, worker, last_lease, requested_at, changed_at, idle_since,
                                 charged_until, tries, state, spot, token)
       SELECT i, 1, i, 0, 0, i, 0, 0, 0, CASE WHEN i % 500 = 0 THEN 3 ELSE 6 END, 0, i::text
       FROM generate_series(1, 50000) i""",
    """INSERT INTO reactions (id, workflow, next_at, created_at, finished_at, result, run, place,
                              tries, occasion, kind, state, outcome)
       SELECT i, i, i, i, i, 0, 1, 0, 0, 3, 2, CASE WHEN i % 500 = 0 THEN 1 ELSE 2 END, 4
       FROM generate_series(1, 50000) i""",
    """INSERT INTO templates (created_at, removed_at, version, namespace, name, digest, body)
       SELECT 0, 0, i % 10, 'team', (i / 10)::text, '', '' FROM generate_series(1, 20000) i""",
    """INSERT INTO workflow_about (workflow, base, body)
       SELECT i, 0, '' FROM generate_series(1, 20000) i""",
    """INSERT INTO workflow_keys (workflow, namespace, key)
       SELECT i, 'team', i::text FROM generate_series(1, 20000) i""",
    f"""INSERT INTO series (step, at, kind, namespace, name, body)
       SELECT 0, i, {int(SeriesKind.GONE)}, '', '1', '' FROM generate_series(1, 50000) i""",
]

# Statement → the indexes it must go by.
HOT = {
    "lock_jobs": {"jobs_pkey"},
    "share_jobs": {"jobs_pkey"},
    "read_jobs": {"jobs_pkey"},
    "job_specs": {"jobs_pkey"},
    "note_tries": {"jobs_pkey"},
    "end_jobs": {"jobs_pkey"},
    "set_priority": {"jobs_pkey"},
    "lock_untied_jobs": {"jobs_pkey"},
    "complete": {"leases_pkey", "waits_pkey", "dependents_pkey", "jobs_pkey"},
    "complete_tied": {"leases_pkey", "waits_pkey", "jobs_pkey"},
    "end_blocked": {"waits_pkey", "jobs_pkey"},
    "end_queued": {"ready_pkey", "jobs_pkey"},
    "grant": {"jobs_pkey", "ready_pkey"},
    "peek": {"ready_pkey"},
    "heads": {"ready_pkey"},
    "take_ready": {"ready_pkey"},
    "park": {"ready_pkey"},
    "count_ready": {"ready_limit"},
    "take_parked": {"parked_pkey"},
    "best_parked": {"parked_pkey"},
    "unpark": {"parked_pkey"},
    "parked_limits": {"parked_pkey"},
    "meet": {"waits_pkey"},
    "lock_waits": {"waits_pkey"},
    "take_waits": {"waits_pkey"},
    "take_due": {"due_pkey"},
    "pull_due": {"due_at", "due_pkey"},
    "next_due": {"due_at"},
    "lock_leases": {"leases_pkey"},
    "leases_of_workers": {"leases_worker"},
    "newer_leases": {"leases_worker"},
    "marked_leases": {"leases_told"},
    "loads": {"leases_worker", "jobs_pkey"},
    "count_leases": {"leases_worker"},
    "start_leases": {"leases_pkey"},
    "mark_leases": {"leases_pkey"},
    "suspect_leases": {"leases_pkey"},
    "touch_leases": {"leases_pkey"},
    "allow_leases": {"leases_pkey"},
    "drop_leases": {"leases_pkey"},
    "lock_workers": {"workers_pkey"},
    "lock_worker_name": {"workers_name_key"},
    "update_workers": {"workers_pkey"},
    "beat_workers": {"workers_pkey"},
    "lock_workflows": {"workflows_pkey"},
    "bump_workflows": {"workflows_pkey"},
    "set_workflow_states": {"workflows_pkey"},
    "jobs_of_workflow": {"jobs_workflow"},
    "open_jobs_of_workflow": {"jobs_workflow"},
    "unfinished_workflows": {"workflows_unfinished"},
    "newest_workflows": {"workflows_pkey"},
    "workflow_about": {"workflow_about_pkey"},
    "workflow_key": {"workflow_keys_pkey"},
    "hold_jobs": {"jobs_pkey"},
    "hold_waits": {"waits_pkey"},
    "jobs_outside": {"jobs_pkey"},
    "find_limits": {"limits_namespace_key_key"},
    "lock_limits": {"limits_pkey"},
    "bump_limits": {"limits_pkey"},
    "find_shapes": {"shapes_digest_key"},
    "dependents": {"dependents_pkey"},
    "dependents_ends": {"dependents_pkey"},
    "lock_dependents": {"dependents_pkey"},
    "read_keys": {"keys_pkey"},
    "read_events": {"events_pkey"},
    "events_near_job": {
        "events_pkey",
        "events_rare",
        "jobs_pkey",
        "leases_pkey",
        "attempts_pkey",
    },
    "fleet_events": {"events_rare"},
    "pool_events": {"events_rare"},
    "moves_between": {"events_pkey", "jobs_pkey", "attempts_pkey", "series_pkey"},
    "moved_between": {"events_pkey", "jobs_pkey", "series_pkey"},
    "ends_between": {"events_pkey"},
    "worker_events": {"events_pkey"},
    "token_by_digest": {"tokens_digest_key"},
    "logs_of_jobs": {"logs_pkey"},
    "artifacts_of_jobs": {"artifacts_pkey"},
    "referenced": {"artifacts_sha256", "names_sha256", "uploads_sha256"},
    "lookup_names": {"names_pkey"},
    "scan_jobs": {"jobs_pkey"},
    "scan_leases": {"leases_pkey", "jobs_pkey"},
    "scan_waits": {"waits_pkey"},
    "scan_due": {"due_unplanned"},
    "scan_bad": {"bad_ends_pkey", "jobs_pkey"},
    "scan_workflow": {"jobs_workflow"},
    "light_jobs": {"jobs_pkey"},
    "job_records": {"jobs_pkey"},
    "read_leases": {"leases_pkey"},
    "job_views": {
        "jobs_pkey",
        "leases_pkey",
        "waits_pkey",
        "due_pkey",
        "workers_pkey",
        "past_workers_pkey",
        "logs_pkey",
        "progress_pkey",
        "dynamic_pkey",
    },
    "scan_matching": {"jobs_pkey"},
    "scan_matching_up": {"jobs_pkey"},
    "scan_texts": {"jobs_pkey"},
    "scan_texts_up": {"jobs_pkey"},
    "reach": {"jobs_pkey"},
    "reach_up": {"jobs_pkey"},
    "standings": {"waits_pkey", "due_pkey"},
    "jobs_behind": {"jobs_pkey"},
    "streaming_logs": {"logs_streaming"},
    "due_schedules": {"schedules_due"},
    "joining_steps": {"steps_joining"},
    "next_due_schedule": {"schedules_due"},
    "lock_schedule": {"schedules_pkey"},
    "lock_schedule_name": {"schedules_namespace_name_key"},
    "waiting_schedules": {"schedule_runs_waiting"},
    "open_runs": {"schedule_runs_open"},
    "runs_of_schedule": {"schedule_runs_schedule"},
    "due_reactions": {"reactions_due"},
    "lock_reaction": {"reactions_pkey"},
    "newest_template": {"templates_pkey"},
    "ready_load": {"ready_pkey"},
    "nth_ready": {"ready_pkey"},
    "ended_spells": {"events_pkey", "jobs_pkey", "attempts_pkey"},
    "living_pool_workers": {"pool_workers_living"},
    "update_pool_workers": {"pool_workers_pkey"},
    "pool_worker": {"pool_workers_pkey"},
    "template_version": {"templates_pkey"},
}

SCANS = {"Index Scan", "Index Only Scan", "Bitmap Index Scan"}
BANNED = {"Seq Scan", "Hash Join", "Merge Join"}


async def plan_of(connection: "asyncpg.Connection[Any]", name: str) -> dict[str, Any]:
    """The plan that is used whatever the arguments are."""
    count = max(map(int, re.findall(r"\$(\d+)", QUERIES[name])), default=0)
    call = f"{name}_plan({', '.join(['NULL'] * count)})" if count else f"{name}_plan"
    await connection.execute(f"PREPARE {name}_plan AS {QUERIES[name]}")
    text = await connection.fetchval(f"EXPLAIN (VERBOSE, FORMAT JSON) EXECUTE {call}")
    await connection.execute(f"DEALLOCATE {name}_plan")
    plan: dict[str, Any] = json.loads(text)[0]["Plan"]
    return plan


class Explained(NamedTuple):
    """The plan of each hot statement, before the tables were first analyzed and after it."""

    fresh: dict[str, dict[str, Any]]
    analyzed: dict[str, dict[str, Any]]


async def explain(dsn: str) -> Explained:
    """Fill a database and answer the plan of each hot statement."""
    connection = await open_connection(dsn)
    await migrate.upgrade(connection)
    for statement in FILL:
        await connection.execute(statement)
    fresh = {name: await plan_of(connection, name) for name in HOT}
    await connection.execute("ANALYZE")
    analyzed = {name: await plan_of(connection, name) for name in HOT}
    await connection.close()
    return Explained(fresh, analyzed)


@pytest.fixture(scope="module")
def explained(postgres_server: PostgresServer) -> Iterator[Explained]:
    dsn = postgres_server.create_database()
    yield asyncio.run(explain(dsn))
    postgres_server.drop_database(dsn)


@pytest.fixture(scope="module")
def plans(explained: Explained) -> dict[str, dict[str, Any]]:
    return explained.analyzed


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


@pytest.mark.parametrize("name", HOT)
def test_a_hot_statement_goes_by_its_indexes(plans: dict[str, dict[str, Any]], name: str) -> None:
    found = list(nodes(plans[name]))
    scanned = {node["Index Name"] for node in found if node["Node Type"] in SCANS}
    assert scanned == HOT[name]
    assert not [node["Node Type"] for node in found if node["Node Type"] in BANNED]
    assert not [node for node in found if node.get("Disabled")]


@pytest.mark.parametrize("name", HOT)
def test_a_hot_statement_walks_through_nothing_in_tables_never_analyzed(
    explained: Explained, name: str
) -> None:
    """A planner without figures takes every table for a small one, until autovacuum comes by."""
    found = {node["Node Type"] for node in nodes(explained.fresh[name])}
    assert not found & {*BANNED, "Materialize"}


@pytest.mark.parametrize(
    "name",
    [name for name in HOT if "LIMIT" in QUERIES[name]],
)
def test_what_asks_for_the_first_few_sorts_nothing_large(
    plans: dict[str, dict[str, Any]], name: str
) -> None:
    """Only what was already picked may be sorted, never what is picked from."""
    for node in nodes(plans[name]):
        if node["Node Type"] == "Limit":
            assert "Sort" not in {inner["Node Type"] for inner in nodes(node)}


@pytest.mark.parametrize("name", ["jobs_of_workflow", "open_jobs_of_workflow"])
def test_a_walk_through_a_large_workflow_reads_no_more_than_its_step(
    postgres_dsn: str, name: str
) -> None:
    """Nor where the planner takes it for a small one: each step would read all that is left."""

    async def check() -> None:
        connection = await open_connection(postgres_dsn)
        await migrate.upgrade(connection)
        await connection.execute(
            """INSERT INTO jobs (id, workflow, shape, rank, base, adjustment, flags, age_from,
                                 created_at, spec)
               SELECT i, 1, 1, i, 0, 0, 0, i, i, 'x' FROM generate_series(1, 30000) i"""
        )
        plan = await plan_of(connection, name)
        await connection.close()
        assert [node["Node Type"] for node in nodes(plan)] == ["Limit", "Index Scan"]

    asyncio.run(check())


@pytest.mark.parametrize("name", ["lock_jobs", "share_jobs", "lock_untied_jobs", "lock_leases"])
def test_rows_are_locked_as_the_index_gives_them(
    plans: dict[str, dict[str, Any]], name: str
) -> None:
    assert "Sort" not in {node["Node Type"] for node in nodes(plans[name])}


def test_the_lock_is_taken_before_numbers_are_drawn(postgres_dsn: str) -> None:
    async def check() -> None:
        connection = await open_connection(postgres_dsn)
        await migrate.upgrade(connection)
        plan = await plan_of(connection, "append_events")
        await connection.close()
        insert = next(node for node in nodes(plan) if node["Node Type"] == "ModifyTable")
        (source,) = (it for it in insert["Plans"] if it["Parent Relationship"] == "Outer")
        drawing = [node for node in nodes(source) if "nextval" in str(node.get("Output"))]
        assert drawing, "numbers come from the column's default"
        for node in drawing:
            assert "CTE Scan" in {inner["Node Type"] for inner in nodes(node)}

    asyncio.run(check())


def test_a_finish_does_not_walk_over_all_that_its_worker_holds(
    postgres_dsn: str, open_store: OpenStore
) -> None:
    """Also where the planner believes that a worker has hardly any: it looked at a quiet time."""

    async def read_by_worker(connection: "asyncpg.Connection[Any]") -> int:
        await connection.execute("SELECT pg_stat_force_next_flush()")
        read: int = await connection.fetchval(
            "SELECT idx_tup_read FROM pg_stat_user_indexes WHERE indexrelname = 'leases_worker'"
        )
        return read

    async def finish(hot: bool) -> int:
        async with open_store(f"hot-{hot}", pool_open=1, fast_path=hot) as store:
            engine = Engine(store, Config(), RealChance())
            await engine.start()
            async with store.connection() as connection:
                await connection.execute("VACUUM ANALYZE")  # as it happens by itself at night
            worker = await engine.workers.enrol(Enrolment(name=f"w-{hot}", slots=FINISHED))
            who, incarnation = worker.worker, worker.incarnation
            for _ in range(2):  # then the shape is known
                await engine.submit([JobSpec(task="t")] * (FINISHED // 2))
            request = SyncRequest(incarnation=incarnation, seq=1, want=FINISHED)
            jobs = (await engine.sync(who, request)).jobs
            done = tuple(Finished(job.job, job.attempt) for job in jobs)
            request = SyncRequest(
                incarnation=incarnation, seq=2, received=jobs[-1].lease, finished=done
            )
            async with store.connection() as connection:
                before = await read_by_worker(connection)
            await engine.sync(who, request)
            await engine.close()
            async with store.connection() as connection:
                return await read_by_worker(connection) - before

    for hot in (True, False):
        assert asyncio.run(finish(hot)) == 0
