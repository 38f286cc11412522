"""Messages of the pages about the fleet: tasks, histories of workers and pools.

The api, the server and clients import it; like all messages, it only describes messages.
"""
