"""What jobs run outside the processes below the keeper, such as containers, and how to end it.

Each has a folder of its name in a folder of the agent's. The file `ender` in it holds a command
that ends it for good: its arguments and environment, as JSON. The agent removes the folder once
that has succeeded. So after a killed agent, its keeper, the keeper's guard, or the next agent ends
what it left.

The standard library only: the keeper imports this file.
"""

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from windlass.worker.keeper.launch import launch
from windlass.worker.keeper.processes import arguments_of, boottime

if TYPE_CHECKING:
    import subprocess

FOLDER = "containers"  # in the agent's directory
ENDER = "ender"
ABSENT = (b"no such container", b"no container with name")  # printed about something that has ended


class Ender(NamedTuple):
    """A command that ends something, and the folder that names it."""

    folder: str
    argv: list[str]
    env: dict[str, str]


def place_of(record: str) -> str:
    """Returns where an agent has these folders, beside the record of its keeper."""
    return os.path.join(os.path.dirname(record), FOLDER)


def read_ender(folder: str) -> Ender | None:
    """Returns the command in a folder; None if there is none."""
    import json  # a keeper without containers need not load it

    try:
        with open(os.path.join(folder, ENDER), encoding="utf-8") as file:
            argv, env = json.load(file)
    except (OSError, ValueError):
        return None
    return Ender(folder, argv, env)


def start_ender(place: str, name: str, null: int) -> int:
    """Starts the command of this name; returns its pid, or 0 if it could not be started."""
    ender = read_ender(os.path.join(place, name))
    try:
        return 0 if ender is None else launch(ender.argv, ender.env, (null, null, null))
    except OSError:
        return 0


def find_root(name: str, known: int, others: Iterable[int]) -> int:
    """Returns the process that watches over the thing with this name; 0 if there is none.

    Its command line contains the name. `known` is the last known one; otherwise it is among
    `others`.
    """
    word = name.encode()
    if known and word in arguments_of(known):
        return known
    return next((pid for pid in others if word in arguments_of(pid)), 0)


def find_enders(place: str) -> list[Ender]:
    """Returns the commands in all folders at a place."""
    try:
        names = sorted(os.listdir(place))
    except OSError:
        return []
    found = (read_ender(os.path.join(place, name)) for name in names)
    return [ender for ender in found if ender is not None]


def has_ended(code: int, errors: bytes) -> bool:
    """Returns whether an ender has succeeded, by its exit code and output."""
    return code == 0 or any(text in errors.lower() for text in ABSENT)


def end_all(place: str, longest_s: float) -> bool:
    """Ends the containers that the folders at a place name; returns whether all ended."""
    import shutil

    running = [(ender, _start(ender)) for ender in find_enders(place)]
    until = boottime() + longest_s
    done = True
    for ender, process in running:
        if process is not None and _ends(process, until):
            shutil.rmtree(ender.folder, ignore_errors=True)
        else:
            done = False
    return done


def _start(ender: Ender) -> "subprocess.Popen[bytes] | None":
    import subprocess

    try:
        return subprocess.Popen(
            ender.argv, env=ender.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, start_new_session=True, cwd="/",
        )  # fmt: skip
    except OSError:
        return None


def _ends(process: "subprocess.Popen[bytes]", until: float) -> bool:
    import subprocess

    try:
        _, errors = process.communicate(timeout=max(0.1, until - boottime()))
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return False
    return has_ended(process.returncode, errors)
