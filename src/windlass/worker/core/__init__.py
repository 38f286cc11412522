"""What an agent decides: which attempts it takes, starts, stops, loses and reports, and when.

The real agent and the simulated one both run this code, so it must not touch processes, files or
sockets: it reaches those through `ports.py`. Anything in `worker` and the simulator may import it.
"""
