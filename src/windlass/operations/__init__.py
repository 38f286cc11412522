"""What can be done with Windlass: each operation is declared once, with its path, right and work.

A server calls the operations for requests over HTTP, an embedded client in its own process
(`dispatch/`). They know no HTTP; only `server`, `embedded`, `assembly` and `cli` import them.
"""
