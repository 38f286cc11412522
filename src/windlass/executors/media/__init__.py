"""Runs ffmpeg and GStreamer jobs, and probes how long their media is.

`windlass.executors` imports the executors; metadata and doctor look for ffmpeg here. Nothing here
may start a process other than through its job's context.
"""
