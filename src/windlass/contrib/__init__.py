"""Windlass in other people's frameworks: Django, FastAPI and Starlette, Flask.

The top layer: only users' programs import it, each module with its framework installed.
"""
