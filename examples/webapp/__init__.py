"""A shop: FastAPI, PostgreSQL, and jobs that are submitted with the orders they belong to.

`make webapp` starts it with everything it needs; `docs/guides/transactions.md` explains it.
"""
