"""Results and files on their way between a client and its jobs.

Handles and clients use this; it asks a `Service` for everything it does not have.
"""
