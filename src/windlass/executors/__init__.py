"""How workers run jobs: the built-in tasks, and those of other packages.

Only `assembly` may import it. The processes of functions import it with each start, so this module
loads nothing: `loading.py` chooses what a worker runs.
"""
