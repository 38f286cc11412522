"""The documentation as a site: what `mkdocs build` needs of us, and the tests of what it builds.

Nothing of Windlass imports it.
"""
