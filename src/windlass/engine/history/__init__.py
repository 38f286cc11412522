"""What is kept of the past: retention, statistics of ended attempts, and events as log lines.

Works in bounded chunks behind the jobs, never on their hot path.
"""
