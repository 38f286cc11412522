"""Connections of a server before any route: admission, TLS, limits of time and size.

`windlass.server.serve` puts these parts around uvicorn's protocol. They know no route and no
service, only `HttpLimits` and the raw answers of refusals.
"""
