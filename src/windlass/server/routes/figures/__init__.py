"""Routes that add up: figures over time, and what needs attention.

`server/routes/__init__.py` lists them; they call `windlass.api.lists` and decide nothing.
"""
