"""What open pages are told: which jobs, workflows and workers changed among those they show.

One reader of the log serves all streams. Only the assembly and the list of routes import it.
"""
