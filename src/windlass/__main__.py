"""Runs the command line: `python -m windlass`."""

from windlass.cli.app import main

main()
