"""Versioned messages between workers, clients and servers.

Plain data that JSON can carry. Servers, clients and workers share these types; they hold no rules.
"""
