"""The dashboard's first requests beside `/healthz`, on few jobs and with generous limits.

`make bench-dashboard` has the real form: a million jobs on SQLite and PostgreSQL.
"""

import time

from benchmarks.dashboard import CASES, filled_server, time_cases
from tests.support.forms import by_form
from tests.support.running import run

SLACK = 2.0  # few rounds


def test_first_pages_cost_a_few_times_what_healthz_costs() -> None:
    async def scenario() -> None:
        async with filled_server(by_form(20_000, 1_000_000)) as (server, token):
            # Processor time: other processes run beside a test.
            clock = time.process_time
            for timed in await time_cases(server, token, by_form(7, 40), CASES, clock):
                assert timed.ratio <= timed.limit * SLACK, timed

    run(scenario())
