"""Keep the address of a database, and the password in it, out of sight of a worker's jobs.

A process's command line can be read by every process of its machine, and its environment
by those of the same user: the worker's jobs among them. So a worker that was given the
address starts itself anew without it, and finds it in a file in memory instead.
"""

import os
import sys
from typing import NoReturn

PREFIX = "fd:"


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
