"""The worker: the agent that takes jobs from a server, and the keeper that runs their processes.

`agent` is the process, `core` decides and touches no process, file or socket, `attempt` runs one
attempt under a mode of `isolation`, and `keeper` starts and ends processes. `assembly`, `embedded`
and the simulator may import it; it must not import the server.
"""
