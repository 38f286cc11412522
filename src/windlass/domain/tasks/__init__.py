"""What the built-in tasks accept, one file per task.

Pure functions: servers check arguments with them at submit, workers build commands from them.
"""
