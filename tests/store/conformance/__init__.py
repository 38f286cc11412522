"""One behavioural suite over `windlass.ports.store` that every store must pass."""
