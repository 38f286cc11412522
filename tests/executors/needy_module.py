"""A module that reads a setting while it is imported."""

import os

import windlass

URL = os.environ["WINDMILL_URL"]


@windlass.task
def get() -> str:
    return URL
