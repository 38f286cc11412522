"""What the built-in tasks accept, one file per task.

Servers check arguments with it at submit, workers before they start. It runs nothing.
"""
