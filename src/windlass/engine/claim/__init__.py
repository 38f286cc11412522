"""Gives ready jobs to workers: search, gates, fair shares, reservations, preemption, wake-ups.

Builds on transaction. It knows nothing about HTTP, workers' processes or reports.
"""
