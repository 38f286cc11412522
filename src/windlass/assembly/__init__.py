"""Chooses the implementations: stores, blobs, clocks, gateways, executors, providers.

Front ends (cli, embedded) import one module of this package each. Only `server` knows the
web server, so that an embedded client and the commands never load it.
"""
