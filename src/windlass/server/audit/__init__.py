"""The audit log of a server: which calls are recorded, and how they reach the store.

The dispatcher and routes use it; it decides nothing about rights.
"""
