"""A small FastAPI application with Windlass: a client for requests, and the API below a path."""
