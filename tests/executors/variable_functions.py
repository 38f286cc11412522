"""Functions that look for environment variables."""

import os

import windlass


@windlass.task
def look(name: str) -> str:
    return os.environ[name]


@windlass.task
async def look_async(name: str) -> str:
    return os.environ[name]


@windlass.task
def look_wrapped(name: str) -> str:
    try:
        return os.environ[name]
    except KeyError as error:
        raise RuntimeError("the settings are incomplete") from error


@windlass.task
def say(text: str) -> None:
    raise ValueError(text)


@windlass.task
def look_elsewhere(name: str) -> str:
    return {"a": "b"}[name]
