"""Versioned messages between workers, clients and servers."""
