"""Parts of `windlass fuzz check`: what it takes from the bucket besides corpus and builds.

Only the check imports it. It reads the bucket and writes nothing there.
"""
