"""`python -m windlass.simulator`, which is `windlass simulate`."""

import sys

from windlass.cli.app import run_command

if __name__ == "__main__":
    run_command(["simulate", *sys.argv[1:]])
