"""Routes for pages about the fleet: tasks, histories of workers and pools.

`windlass.server.routes` lists them; they call `windlass.api.fleet` and decide nothing themselves.
"""
