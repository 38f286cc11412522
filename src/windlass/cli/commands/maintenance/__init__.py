"""Commands that check and maintain an installation: db, verify, doctor, config.

Only `windlass.cli.app` imports these modules. `db` and `verify` may open a store directly.
"""
