"""The public client, the HTTP transport below it, and the agents' gateway.

Programs and commands import it. It must not load the engine, a store or the web server.
"""
