"""What the commands print: text, JSON, tables, errors and exit codes.

Commands import this package. It must not import `commands` or `options`, and it loads rich only
when it prints a table or a live view.
"""
