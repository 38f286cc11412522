"""Every driver: the job exists if and only if the transaction of its user commits."""

import subprocess
import sys

import pytest

from tests.transactions.conftest import Queue
from tests.transactions.drivers import WAYS, Way


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_job_runs_when_its_transaction_has_committed(queue: Queue, way: Way) -> None:
    job = way(queue.dsn, f"kept {way.__name__}", True)
    assert queue.client.job(job).result(timeout=60) == 3
    assert f"kept {way.__name__}" in queue.orders()


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_nothing_is_left_of_a_transaction_that_was_rolled_back(queue: Queue, way: Way) -> None:
    job = way(queue.dsn, f"undone {way.__name__}", False)
    assert job > 0
    assert not queue.job_exists(job)
    assert f"undone {way.__name__}" not in queue.orders()
    assert queue.ask("SELECT FROM windlass.inbox") == []


def test_no_driver_and_no_framework_is_loaded_by_itself() -> None:
    program = """
import sys, windlass
assert windlass.submit_in and windlass.submit_in_async
loaded = {name.partition(".")[0] for name in sys.modules}
print(sorted(loaded & {"psycopg", "asyncpg", "sqlalchemy", "django", "fastapi", "flask",
                       "starlette", "sqlite3", "apsw", "aiosqlite"}))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
