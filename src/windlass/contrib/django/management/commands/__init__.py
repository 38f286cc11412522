"""`windlass_worker` runs jobs, `windlass_job` shows one.

They read `settings.WINDLASS` and call the command line and the client of Windlass.
"""
