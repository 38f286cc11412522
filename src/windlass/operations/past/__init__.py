"""The past, for `as_of=`: a moment is the last event by then; what happened later is taken back.

Lists, pages and figures import it. It reads the event log and never changes anything.
"""
