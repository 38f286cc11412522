"""The engine inside a user's program, without a server: `windlass.Client.embedded()`.

`front.py` imports it when a program asks for it. It must not import the web server.
"""
