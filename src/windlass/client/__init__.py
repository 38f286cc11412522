"""Talking to a server: the HTTP transport, the agents' gateway, the public client."""
