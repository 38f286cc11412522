"""Commands for workers, pools, queues, namespaces, tokens and names.

Only `windlass.cli.app` imports these modules.
"""
