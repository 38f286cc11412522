"""The HTTP server: the application, its routes, and what runs it on a socket.

`assembly/server.py` and the commands import it; clients and the embedded engine must not.
"""
