"""Views of what happens now: drawn again and again on a terminal, or told line by line.

They load rich, so commands import them only when they show something.
"""
