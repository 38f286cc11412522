"""Transactions that stay open, and applications that die: nobody waits, and nothing is lost."""

import signal
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path
from statistics import median

import psycopg

from tests.transactions.conftest import Queue
from tests.transactions.functions import add
from windlass.clock import RealClock

ROOT = Path(__file__).resolve().parents[2]
OPEN = 50
JOBS = 20

# An application that submits a job, commits if it is told to, says so, and waits to be killed.
APPLICATION = """
import sys, psycopg
from tests.transactions.functions import add

connection = psycopg.connect(sys.argv[1])
job = add.submit_in(connection, 1, 2)
if sys.argv[2] == "commit":
    connection.commit()
print(job.id, flush=True)
sys.stdin.read()
"""


def milliseconds_for(queue: Queue, jobs: int) -> int:
    """Returns how long it takes to submit and run so many jobs, one after another."""
    clock = RealClock()
    began = clock.now_ms()
    for _ in range(jobs):
        assert queue.client.submit(add, 1, 2).result(timeout=60) == 3
    return clock.now_ms() - began


def test_open_transactions_hold_up_nobody(queue: Queue) -> None:
    before = milliseconds_for(queue, JOBS)
    with ExitStack() as stack:
        opened = [stack.enter_context(psycopg.connect(queue.dsn)) for _ in range(OPEN)]
        pending = [add.submit_in(connection, 5, 6) for connection in opened]
        during = milliseconds_for(queue, JOBS)
        # One that begins later and commits first is not held up either.
        with psycopg.connect(queue.dsn) as other:
            first = add.submit_in(other, 7, 8)
        assert queue.client.job(first.id).result(timeout=60) == 15
        assert not queue.job_exists(pending[0].id)
    assert during < 3 * before + 1_000
    assert [queue.client.job(job.id).result(timeout=60) for job in pending] == [11] * OPEN


def test_a_job_starts_within_a_second_of_the_commit(queue: Queue) -> None:
    """At least three of five times, beyond what the machine takes for any job just then."""
    assert queue.client.submit(add, 1, 2).result(timeout=60) == 3  # the worker is warm
    taken = [(ms_from_commit_to_result(queue), milliseconds_for(queue, 1)) for _ in range(5)]
    assert median(ours - any_job for ours, any_job in taken) < 1_000


def ms_from_commit_to_result(queue: Queue) -> int:
    clock = RealClock()
    with psycopg.connect(queue.dsn) as connection:
        job = add.submit_in(connection, 1, 2)
    committed = clock.now_ms()
    assert queue.client.job(job.id).result(timeout=60) == 3
    return clock.now_ms() - committed


def killed_application(queue: Queue, ending: str) -> int:
    """Returns the job of an application that was killed after it said so."""
    words = [sys.executable, "-c", APPLICATION, queue.dsn, ending]
    with subprocess.Popen(
        words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as application:
        assert application.stdout is not None
        job = int(application.stdout.readline())
        application.send_signal(signal.SIGKILL)
    return job


def test_an_application_that_dies_after_its_commit_has_submitted(queue: Queue) -> None:
    job = killed_application(queue, "commit")
    assert queue.client.job(job).result(timeout=60) == 3


def test_an_application_that_dies_before_its_commit_has_not(queue: Queue) -> None:
    assert not queue.job_exists(killed_application(queue, "nothing"))
