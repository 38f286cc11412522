"""The options that several commands share, and what they are converted to.

Commands import this package. It must neither print nor import `commands` or `output`.
"""
