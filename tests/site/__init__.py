"""The documentation: pages written from the code, what `mkdocs build` needs of us, and their tests.

Nothing of Windlass imports it, so an installation has none of it.
"""
