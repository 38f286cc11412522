"""How an operation is declared, found, given its arguments and called, from wherever it is called.

Operations, servers and embedded clients import it. It knows no operation and no HTTP.
"""
