"""Measure the engine on each store beside raw loops: `python -m benchmarks.core [section …]`.

Prints a table and writes `benchmarks/results/core.json`. Sections are named below; without
names all of them run. `--quick` is for a first look; `--long` adds what takes minutes.
"""

from benchmarks.sections import (
    budgets,
    claims,
    explain,
    graphs,
    group_commit,
    held_transaction,
    memory,
    postgres,
    sqlite,
    wal,
    workflows,
    workflows_postgres,
)
from benchmarks.sections_command import Sections, run_sections

SECTIONS: Sections = {
    "sqlite": sqlite.run,
    "postgres": postgres.run,
    "held-transaction": held_transaction.run,
    "group-commit": group_commit.run,
    "claims": claims.run,
    "budgets": budgets.run,
    "memory": memory.run,
    "wal": wal.run,
    "workflows": workflows.run,
    "workflows-postgres": workflows_postgres.run,
    "explain": explain.run,
    "graphs": graphs.run,
}


if __name__ == "__main__":
    run_sections("core", __doc__, SECTIONS)
