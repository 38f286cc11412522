"""How arguments and results are encoded: as JSON, by the annotations of functions.

`compile.py` makes a codec for an annotation, once; `calls.py` has those of a function. A value that
would not come back equal, in type and value, is refused. Loaded only when a call has values.
"""
