"""Ten things that people do with a job queue, in Windlass.

`python examples/ten_tasks.py` runs them all, on a queue of its own. The guide
docs/guides/compared.md shows the same ten in other systems.
"""

import tempfile
from datetime import timedelta
from pathlib import Path

import apsw

import windlass


@windlass.task
def add(left: int, right: int) -> int:
    return left + right


@windlass.task(retries=3, retry_on=[ConnectionError], backoff={"initial": "10ms", "factor": 2})
def flaky(folder: str) -> str:
    tries = len(list(Path(folder).iterdir()))
    Path(folder, f"try-{tries}").touch()
    if tries < 2:
        raise ConnectionError("not yet")
    return f"worked at try {tries + 1}"


@windlass.task
def total(numbers: list[int]) -> int:
    return sum(numbers)


@windlass.task
def long_work() -> None:
    done = 0
    while True:  # ends when the job is canceled
        done += 1
        windlass.current().progress(done, total=1_000_000, text="still at it")


@windlass.task
def order(number: int) -> str:
    receipt = windlass.step("charge", add, number, 100)
    answer = windlass.wait_for(f"packed {number}", timeout="2d")
    return f"receipt {receipt}, {answer}"


def main(folder: Path) -> None:
    """Does all ten."""
    store = folder / "jobs.db"
    with windlass.Client.embedded(store, workers=2) as client:
        windlass.set_default_client(client)

        # 1. Run a function somewhere else. 2. Wait for its result.
        job = add.submit(1, 2)
        print("1, 2:", job.result(timeout=60))

        # 3. Retry after some exceptions, with a growing pause.
        tries = folder / "tries"
        tries.mkdir()
        print("3:", flaky.submit(str(tries)).result(60))

        # 4. Run it later.
        print("4:", add.options(delay=timedelta(milliseconds=100)).submit(2, 2).result(60))

        # 5. Run it by the calendar.
        client.schedules.put("nightly", "0 3 * * *", jobs=[add.job(3, 3)])
        print("5:", client.schedules.show("nightly").cron)

        # 6. A chain: each gets the result of the one before.
        print("6:", add.submit(add.submit(1, 1).output, 5).result(60))

        # 7. Many at once, and one that gets all their results.
        parts = add.map(range(10), range(10))
        print("7:", total.submit([part.output for part in parts]).result(60))

        # 8. Never two of the same at once.
        once = add.options(key="report", delay="1h")
        print("8:", once.submit(1, 1).id == once.submit(1, 1).id)

        # 9. See how far it is, and cancel it while it runs.
        running = long_work.submit()
        while running.info().progress is None:
            pass
        running.cancel()
        print("9:", running.wait(60).state)

        # 10. In your own transaction; and wait for days without holding a slot.
        connection = apsw.Connection(str(store))
        connection.set_busy_timeout(10_000)  # the client writes to the same file
        with connection:
            submitted = order.submit_in(connection, 17)
        connection.close()
        client.send("packed 17", "two parcels")
        print("10:", client.job(submitted.id).result(60))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        main(Path(made))
