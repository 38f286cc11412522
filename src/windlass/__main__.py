"""`python -m windlass`."""

from windlass.cli.app import main

main()
