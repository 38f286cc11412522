"""The inbox: jobs that users submitted in transactions of their own become jobs of the queue.

A service above the engine, as `schedules` is; `loops` and `assembly` import it. It must not decide
who may submit what: `assembly` supplies that check.
"""
