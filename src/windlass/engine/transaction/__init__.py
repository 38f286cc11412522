"""The working set of one transaction, and how calls are gathered into transactions.

Holds the unit of work, its effects after the commit, the group commit, and what the engine
caches of the store. Every other part of the engine builds on it; it imports none of them.
"""
