"""The commands of the engine, one class per group: jobs, workflows, workers, queues, explain.

Each checks its arguments and runs one step in a transaction. Only the engine creates them; callers
reach them as `engine.jobs`, `engine.queues` and so on.
"""
