"""Changes that span many jobs: cascades and their runner, stopping, retrying, the watchdog.

Builds on jobs, submit and attempts. Cascades record their intent first, so a crash loses nothing.
"""
