"""The client for blocking code: its thread with an event loop, and handles on jobs and workflows.

`windlass.front` and the command line import it. It decides nothing: every call is one of
the asynchronous client, and `make blocking-client` writes the methods.
"""
