"""The dashboard's first requests beside `/healthz`, on few jobs and with generous limits.

`make bench-dashboard` has the real form: a million jobs on SQLite and PostgreSQL.
"""

from benchmarks.dashboard import filled_server, time_cases
from tests.support.forms import by_form
from tests.support.running import run

SLACK = 4.0  # other processes run beside a test


def test_first_pages_cost_a_few_times_what_healthz_costs() -> None:
    async def scenario() -> None:
        async with filled_server(by_form(20_000, 1_000_000)) as (server, token):
            for timed in await time_cases(server, token, by_form(7, 40)):
                assert timed.ratio <= timed.limit * SLACK, timed

    run(scenario())
