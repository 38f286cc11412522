"""Section: `/bin/true` as a shell job, beside plain `asyncio.create_subprocess_exec`.

The same number of processes side by side: the worker's slots.
"""

from benchmarks.fleet import over_http, plain_processes
from benchmarks.fleet.processes import server, worker
from benchmarks.measure import interleave
from benchmarks.options import Options
from benchmarks.report import Row, rate_row
from windlass.domain.job.job import JobSpec

NAME = "shell jobs"
AT_ONCE = (8, 32)
OF_PLAIN = 0.8


def run(options: Options) -> list[Row]:
    return [row for at_once in AT_ONCE for row in _compare(options, at_once)]


def _compare(options: Options, at_once: int) -> list[Row]:
    jobs = options.pick(2_000, 100)
    job = JobSpec(task="shell", args={"argv": [plain_processes.PROGRAM]})
    with (
        server(options.folder / f"server-{at_once}") as running,
        worker(running, "w1", at_once),
    ):
        laps = interleave(
            options.pick(5, 1),
            {
                "plain": lambda: plain_processes.run(jobs, at_once),
                "job": lambda: over_http.drain(running, [job] * jobs)[1]._replace(cpu_seconds=0.0),
            },
        )
    section = f"{NAME}, {at_once} at once"
    return [
        rate_row(section, "create_subprocess_exec", laps["plain"]),
        rate_row(section, "job, HTTP", laps["job"], laps["plain"], "create_subprocess_exec",
                 OF_PLAIN),
    ]  # fmt: skip
