"""Measure the whole system beside its peers: `python -m benchmarks.fleet [section …]`.

Prints a table and writes `benchmarks/results/fleet.json`. Sections are named below; without
names all of them run. `--quick` is for a first look: its figures mean little.
"""

from benchmarks.fleet import big_log, idle_workers, latency, shell, submits, throughput
from benchmarks.sections_command import Sections, run_sections

SECTIONS: Sections = {
    "latency": latency.run,
    "submits": submits.run,
    "throughput": throughput.run,
    "shell": shell.run,
    "idle": idle_workers.run,
    "log": big_log.run,
}


if __name__ == "__main__":
    run_sections("fleet", __doc__, SECTIONS)
