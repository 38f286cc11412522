"""Routes for pages about the fleet: tasks, histories of workers and pools, commit fuzzing.

`windlass.server.routes` lists them; they call `windlass.api.fleet` and decide nothing themselves.
"""
