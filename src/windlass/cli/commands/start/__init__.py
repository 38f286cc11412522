"""Commands that start processes: `up`, `server` and `worker`.

Only `windlass.cli.app` imports these modules. They alone may load the server and the worker.
"""
