"""Hides the store's address, and the password in it, from a worker's jobs.

Every process on the machine can read a command line, and every process of the same user can read
its environment; a worker's jobs can do both. So a worker that was given the address restarts itself
without it and reads it from an in-memory file instead.
"""

import os
import sys
from typing import Final, NoReturn

PREFIX: Final = "fd:"


def hide_dsn(store: str) -> str:
    """Returns the store's address; the first call restarts the program without it."""
    if store.startswith(PREFIX):
        return _read(int(store.removeprefix(PREFIX)))
    command = [sys.executable, *sys.orig_argv[1:]]
    if any(store in word for word in (*command, *os.environ.values())):
        _restart(command, store)
    return store


def _restart(command: list[str], store: str) -> NoReturn:
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
