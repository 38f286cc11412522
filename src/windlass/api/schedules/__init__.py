"""Templates and schedules: their requests with the rights of a caller, and how they are rendered.

The server's routes and the embedded service import it; it must not know about HTTP.
"""
