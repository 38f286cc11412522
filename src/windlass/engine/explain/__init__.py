"""Explains: why a job is waiting, why a worker is idle, forecasts, and where the time went.

Only reads. It uses the same matching and gates as claims, so the two cannot disagree.
"""
