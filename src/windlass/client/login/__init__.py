"""Signing in from the command line: the device flow, and logins that are kept for later calls.

Commands and the client use it; it knows the identity provider and no engine.
"""
