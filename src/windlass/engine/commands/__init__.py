"""The commands of the engine, grouped by what they are about: jobs, workflows, fleet, explain.

Each checks its arguments and runs one step in a transaction. Only the engine object imports them.
"""
