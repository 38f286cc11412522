"""Who acts in a simulation: servers, agents with their keepers and processes, and clients.

Servers run the production engine and agents the production worker; only what lies below their
ports is simulated here.
"""
