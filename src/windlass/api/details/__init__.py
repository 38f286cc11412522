"""What a job's own page shows beside the job: its log by lines, its stack, how to reproduce it.

Renders answers of the engine; the routes and the embedded service use it.
"""
