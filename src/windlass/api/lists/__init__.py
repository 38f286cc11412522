"""Lists of jobs and figures about them: orders, cursors, overviews, what needs attention, the past.

The server's routes and the embedded service may import it; it must not know about HTTP.
"""
