"""One behavioural suite over `windlass.store` that every store must pass."""
