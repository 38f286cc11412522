"""The worker: the agent that takes jobs from a server, and the keeper that runs their processes.

Contains the packages core, agent, attempt and keeper. `wiring`, `embedded` and the
simulator may import it; it must not import the server.
"""
