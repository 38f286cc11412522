"""What a Windlass server shows of commit fuzzing: routes, metrics, and the reader behind them.

Nothing here changes a pipeline. `routes.py`, `messages.py` and `metrics.py` load without the rest
of fuzzing, because every server that has the plug-in loads them.
"""
