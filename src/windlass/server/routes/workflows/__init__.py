"""Routes about workflows, their graphs, and what starts them: templates and schedules.

Only `windlass.server.routes` imports these; they parse nothing and decide nothing themselves.
"""
