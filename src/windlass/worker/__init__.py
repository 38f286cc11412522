"""The worker: an agent that pulls jobs and runs them, and its keeper."""
