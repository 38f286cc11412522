"""Runs ffmpeg and GStreamer jobs, and probes the duration of their media.

`windlass.executors` imports the executors; metadata and doctor look for ffmpeg here. Processes are
started only through the job's context.
"""
