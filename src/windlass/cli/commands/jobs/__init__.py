"""Commands for single jobs: submit, run, list, show, cancel, retry, explain.

Only `windlass.cli.app` imports these modules.
"""
