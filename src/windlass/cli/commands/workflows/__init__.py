"""Commands for workflows, their templates and their schedules.

Only `windlass.cli.app` imports these modules.
"""
