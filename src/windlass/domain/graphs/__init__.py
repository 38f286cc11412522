"""Graphs of workflows: groups, layout, the longest chain, lanes of attempts, differences of runs.

Everything here is a pure function of jobs and times. It is made for 100,000 jobs and a million
dependencies, runs in a thread beside the server's loop, and so avoids long calls into C.
"""
