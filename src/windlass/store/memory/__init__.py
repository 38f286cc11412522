"""The memory store: the readable reference for what the port means. Nothing survives it."""
