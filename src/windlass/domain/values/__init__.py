"""Basic values: errors, JSON, times, quantities, versions and documented options.

Everything may import it; it imports nothing else of Windlass.
"""
