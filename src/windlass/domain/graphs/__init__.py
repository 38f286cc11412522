"""Graphs of workflows: groups, layout, longest chain, timelines, comparison of runs.

Everything here is a pure function of jobs and times. It handles 100,000 jobs and a million
dependencies. It runs in a thread beside the server's loop, and so avoids long calls into C.
"""
