"""What is HTTP about calls: ASGI, callers and their limits, sessions, replies, errors.

It finds and calls operations as embedded clients do, by `windlass.operations.dispatch`, and
contains no route.
"""
