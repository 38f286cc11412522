"""What is written between the values of a file: `${{ … }}` in them, and `if`.

Names stand for parameters, values of a matrix and indexes. It must not know what jobs are.
"""
