"""One attempt on a worker: its timers, log, processes and files, and the context its executor sees.

The agent and the simulator may import it. It must not decide what the server is told about other
attempts (see `core`), and starts processes only through the keeper.
"""
