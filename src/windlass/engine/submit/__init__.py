"""Turns a validated submission into rows: plain jobs, graphs, and jobs that join a workflow.

Builds on transaction and jobs. It does not validate input: that happens before a transaction.
"""
