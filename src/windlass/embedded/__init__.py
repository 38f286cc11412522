"""The engine in a program's own process: a client that needs no server."""
