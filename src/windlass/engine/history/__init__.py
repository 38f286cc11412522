"""What we keep of the past: retention, statistics of ended attempts, and events as log lines.

Works in bounded chunks in the background, never on the hot path of jobs.
"""
