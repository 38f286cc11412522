"""Keep secrets out of sight of a worker's jobs.

A process's command line can be read by every process of its machine, and the environment it
was started with by those of the same user: the worker's jobs among them. So a worker that was
given secrets there starts itself anew without them, and finds them in a file in memory instead.
"""

import json
import os
import sys
from collections.abc import Mapping
from typing import Final, NoReturn

from windlass.worker.attempt.secrets import VARIABLE_START

PREFIX = "fd:"
HELD: Final = "WINDLASS_HELD"  # the descriptor with the secrets of the environment
TOKEN: Final = "WINDLASS_TOKEN"
CODE: Final = "WINDLASS_CODE"
KEEPS_NO_TOKEN: Final = "WINDLASS_KEEPS_NO_TOKEN"


def hold(secrets: Mapping[str, str]) -> int:
    """Returns the descriptor of a file in memory that a program to be started may read."""
    held = os.memfd_create("secrets")
    os.write(held, json.dumps(dict(secrets)).encode())
    return held


def take_secrets() -> dict[str, str]:
    """Returns the secrets of the environment; the first time this starts the program anew."""
    held = os.environ.pop(HELD, None)
    if held is not None:
        found: dict[str, str] = json.loads(_read(int(held)))
        return found
    secrets = secrets_of(os.environ)
    if secrets:
        descriptor = hold(secrets)
        os.set_inheritable(descriptor, True)
        command = [sys.executable, *sys.orig_argv[1:]]
        kept = without_secrets(os.environ)
        os.execve(sys.executable, command, {**kept, HELD: str(descriptor)})
    return {}


def secrets_of(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns the variables that jobs must not see."""
    return {name: value for name, value in environ.items() if _is_secret(name)}


def without_secrets(environ: Mapping[str, str]) -> dict[str, str]:
    """Returns all other variables."""
    return {name: value for name, value in environ.items() if not _is_secret(name)}


def _is_secret(name: str) -> bool:
    return name in (TOKEN, CODE) or name.startswith(VARIABLE_START)


def conceal(store: str) -> str:
    """The address that `store` is, or stands for; the first time this starts the program anew."""
    if store.startswith(PREFIX):
        return _read(int(store.removeprefix(PREFIX)))
    command = [sys.executable, *sys.orig_argv[1:]]
    if any(store in word for word in (*command, *os.environ.values())):
        _start_anew(command, store)
    return store


def _start_anew(command: list[str], store: str) -> NoReturn:
    held = os.memfd_create("store")
    os.write(held, store.encode())
    os.set_inheritable(held, True)
    kept = {name: value for name, value in os.environ.items() if store not in value}
    here = f"{PREFIX}{held}"
    os.execve(sys.executable, [word.replace(store, here) for word in command], kept)


def _read(held: int) -> str:
    os.lseek(held, 0, os.SEEK_SET)
    with open(held, encoding="utf-8") as file:
        return file.read()
