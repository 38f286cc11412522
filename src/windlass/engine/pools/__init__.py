"""Pools: a snapshot of the fleet, sizing steps, reconciling with machines, and cost accounts.

Built on the engine object. The pools loop calls providers, never inside a transaction.
"""
