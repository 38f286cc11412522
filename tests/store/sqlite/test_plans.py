"""Every statement reaches its rows by an index, and a claim's cost is that of its rows."""

from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest

from tests.store.conformance.rows import grant
from tests.store.sqlite.driving import Steps, close, fill, open_store, transact
from windlass.store.sql.places import Probe
from windlass.store.sql.transaction import WriteTx
from windlass.store.sqlite.connection import open_reader, open_writer
from windlass.store.sqlite.statements import QUERIES, integers

# Those that walk over a whole table, each with the reason why it may.
WALKS = {
    "overdue_leases": "leases are bounded by the fleet's slots",
    "orphaned_leases": "leases are bounded by the fleet's slots",
    "silent_workers": "once in a health cycle",
    "troubled_workers": "once in a health cycle",
    "past_metadata": "a few for each worker, once in a cleanup cycle",
    "queues": "a handful",
    "meta": "a handful",
    "sequences": "a handful, once at start",
    "events_of_job": "only if a job's history has a gap",
    "any_table": "stops at the first row",
    "counters": "names times servers",
    "pull_cascade": "stops at the first row",
    "oldest_event": "stops at the first row",
    "next_due": "stops at the first row",
    "ready_before": "a row for each of the shapes",
    "queued_jobs": "stops at its bound",
    "lease_counts": "leases are bounded by the fleet's slots",
    "fleet": "a row for each worker, when somebody asks why",
    "leases_by_start": "leases are bounded by the fleet's slots",
    "workers_by_status": "a row for each worker, once a minute",
    "pool_workers_by_state": "a partial index of those alone, bounded by max_workers",
    "lost_logs": "a partial index of those alone, no more than a bound",
    "holders": "leases are bounded by the fleet's slots",
    "running_by_shape": "leases are bounded by the fleet's slots",
    "unbound_leases": "leases are bounded by the fleet's slots",
    "preemptible": "leases are bounded by the fleet's slots",
    "reservations": "one for each worker at most, and rare",
    "namespace_weights": "a handful",
    "ready_load": "of each shape, by its primary key, no more than a bound",
    "leased_load": "leases are bounded by the fleet's slots",
    "living_pool_workers": "a partial index of those alone, bounded by max_workers",
    "pools_by_name": "a handful",
    "remove_pool_workers": "when a pool is removed",
    "forget_statistics": "at most 20,000 rows, once in a round that changed some",
    "ready_sample": "both ends of a shape by its primary key, no more than a bound",
    "census_of_jobs": "stops at its bound in each place",
    "census_of_workers": "a row for each worker, once in a scrape",
    "newest_event": "stops at the first row, from the end",
    "gaps": "one for each failover or restored backup",
    "unstarted_runs": "its inner query stops at its bound",
} | {name: "a snapshot is everything" for name in QUERIES if name.startswith("all_")}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[apsw.Connection]:
    path = tmp_path_factory.mktemp("plans") / "windlass.db"
    close(open_store(path))
    fill(path, 20_000)
    connection = open_reader(path)
    yield connection
    connection.close()


def plan(connection: apsw.Connection, name: str) -> list[str]:
    """What SQLite says it will do, a line for each step."""
    statement = QUERIES[name]
    cursor = connection.cursor()
    count = _parameters(connection, statement)
    bindings = tuple(integers([1, 2]) for _ in range(count))
    rows = cursor.execute("EXPLAIN QUERY PLAN " + statement, bindings)
    return [str(row[3]) for row in rows]


def _parameters(connection: apsw.Connection, statement: str) -> int:
    import apsw.ext

    return apsw.ext.query_info(connection, statement).bindings_count


@pytest.mark.parametrize("name", sorted(set(QUERIES) - set(WALKS)))
def test_no_statement_scans_a_table(database: apsw.Connection, name: str) -> None:
    # The rows of a subquery are counted where they come from.
    names = ("wanted", "carray", "json_each", "CONSTANT ROW", "head", "below", "holding", "(sub")
    arrays = tuple(f"SCAN {name}" for name in names)
    scans = [step for step in plan(database, name) if step.startswith("SCAN")]
    assert [step for step in scans if not step.startswith(arrays)] == []


@pytest.mark.parametrize("name", sorted(WALKS))
def test_what_may_scan_does(database: apsw.Connection, name: str) -> None:
    """Otherwise it needs no exception any more."""
    assert any(step.startswith("SCAN") for step in plan(database, name)), WALKS[name]


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("peek", "SEARCH ready USING PRIMARY KEY (shape=? AND (rank,job)>(?,?))"),
        ("count_ready", "SEARCH ready USING COVERING INDEX ready_limit (limit_id=? AND shape=?)"),
        ("rare_events_of_job", "SEARCH events USING INDEX events_rare (job=?)"),
        (
            "events_of_job_between",
            "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
        ),
        (
            "worker_events",
            "SEARCH events USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)",
        ),
        ("pool_events", "SEARCH events USING INDEX events_rare (job=? AND rowid>? AND rowid<?)"),
        ("leases_of_workers", "SEARCH l USING INDEX leases_worker (worker=?)"),
        ("marked_leases", "SEARCH l USING INDEX leases_marked (worker=?)"),
        ("read_leases", "SEARCH l USING INTEGER PRIMARY KEY (rowid=?)"),
        ("drop_leases", "SEARCH leases USING INTEGER PRIMARY KEY (rowid=?)"),
        ("take_due", "SEARCH due USING INDEX due_job (job=?)"),
        ("scan_jobs", "SEARCH j USING INTEGER PRIMARY KEY (rowid<?)"),
        ("scan_leases", "SEARCH l USING INTEGER PRIMARY KEY (rowid<?)"),
        ("scan_waits", "SEARCH waits USING INTEGER PRIMARY KEY (rowid<?)"),
        ("scan_due", "SEARCH due USING COVERING INDEX due_unplanned (job<?)"),
        ("scan_bad", "SEARCH o USING COVERING INDEX outcomes_bad (job<?)"),
        ("scan_workflow", "SEARCH j USING INDEX jobs_workflow (workflow=? AND rowid<?)"),
        ("streaming_logs", "SEARCH logs USING INDEX logs_streaming (job>?)"),
        ("jobs_behind", "SEARCH j USING INTEGER PRIMARY KEY (rowid>?)"),
        ("remove_keys", "SEARCH keys USING INDEX keys_job (job=?)"),
        (
            "due_schedules",
            "SEARCH schedules USING COVERING INDEX schedules_due (next_at<?)",
        ),
        (
            "waiting_schedules",
            "SEARCH schedule_runs USING COVERING INDEX schedule_runs_waiting (schedule>?)",
        ),
        (
            "open_runs",
            "SEARCH schedule_runs USING INDEX schedule_runs_open (schedule=? AND state<?)",
        ),
        (
            "open_jobs_of_workflow",
            "SEARCH j USING COVERING INDEX jobs_workflow (workflow=? AND rowid>?)",
        ),
        ("unfinished_workflows", "SEARCH workflows USING INDEX workflows_unfinished (id>?)"),
        ("newest_workflows", "SEARCH workflows USING INTEGER PRIMARY KEY (rowid<?)"),
        ("tied_leases", "SEARCH l USING INTEGER PRIMARY KEY (rowid=?)"),
        ("end_blocked", "SEARCH waits USING INTEGER PRIMARY KEY (rowid=?)"),
        ("due_reactions", "SEARCH reactions USING INDEX reactions_due (next_at<?)"),
    ],
)
def test_hot_statements_use_the_index_made_for_them(
    database: apsw.Connection, name: str, step: str
) -> None:
    assert step in plan(database, name)


@pytest.mark.parametrize("name", sorted(name for name in QUERIES if name.startswith("scan_")))
def test_lists_are_read_in_order_without_sorting(database: apsw.Connection, name: str) -> None:
    assert [step for step in plan(database, name) if "TEMP B-TREE" in step] == []


@pytest.mark.parametrize(
    "name",
    ["peek", "due_now", "heads", "best_parked", "overdue_leases", "due_schedules", "open_runs"],
)
def test_nothing_but_a_short_list_is_sorted(database: apsw.Connection, name: str) -> None:
    sorts = [step for step in plan(database, name) if "TEMP B-TREE" in step]
    assert sorts == (["USE TEMP B-TREE FOR ORDER BY"] if name == "overdue_leases" else [])


def claim_steps(path: Path, jobs: int) -> int:
    """What it costs to claim ten jobs of one shape when `jobs` are ready."""
    close(open_store(path))
    fill(path, jobs)
    store = open_store(path)
    transact(store, _claim_ten)  # Statements are prepared, pages are read.
    steps = Steps(store.writer)
    transact(store, _claim_ten)
    close(store)
    return steps.count


async def _claim_ten(tx: WriteTx) -> None:
    tickets = await tx.places.peek([Probe(3, 0, 0, 10)])
    await tx.leases.drop([ticket.job for ticket in tickets])
    grants = [grant(ticket, 7) for ticket in tickets]
    assert len(await tx.leases.grant(grants, 4, tx.now, 1_000)) == 10


def test_a_claim_costs_the_same_however_long_the_queue_is(tmp_path: Path) -> None:
    short = claim_steps(tmp_path / "short.db", 1_000)
    long = claim_steps(tmp_path / "long.db", 50_000)
    assert long <= short * 1.02


def test_heads_cost_as_much_as_there_are_shapes(tmp_path: Path) -> None:
    counts = []
    for jobs in (1_000, 20_000):
        path = tmp_path / f"{jobs}.db"
        close(open_store(path))
        fill(path, jobs)
        connection = open_writer(path)
        steps = Steps(connection)
        assert len(connection.execute(QUERIES["heads"]).fetchall()) == 10
        counts.append(steps.count)
        connection.close()
    assert counts[0] == counts[1]
