"""The folders in which the keeper starts programs.

The standard library only: the keeper imports this file.
"""

import os
from contextlib import suppress


def enter(path: str, make: bool, user: int | None) -> None:
    """Enters a folder, for the process that is started next; folders are reused."""
    try:
        os.chdir(path)
    except FileNotFoundError:
        if not make:
            raise
        make_folder(path)
        os.chdir(path)
    if make and user is not None:
        hand_over(path, user)


def make_folder(path: str) -> None:
    """Makes a folder that is closed to other users, if it is not there."""
    try:
        os.mkdir(path, 0o700)
    except FileExistsError:
        pass


def hand_over(path: str, user: int) -> None:
    """Gives a folder to another user, with what the agent has put there."""
    os.chown(path, user, user)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            place = f"{folder}/{name}"
            if os.lstat(place).st_uid == os.getuid():
                os.chown(place, user, user, follow_symlinks=False)


def take_back(path: str) -> None:
    """Takes a folder back with everything in it; nobody else may use it meanwhile.

    Files of other users stay as they are.
    """
    me, group = os.geteuid(), os.getegid()
    os.chown(path, me, group, follow_symlinks=False)
    for folder, folders, files in os.walk(path):
        for name in (*folders, *files):
            with suppress(PermissionError):
                os.chown(f"{folder}/{name}", me, group, follow_symlinks=False)


def holds_something(path: str) -> bool:
    """Returns whether a folder is not empty, or cannot be read."""
    try:
        return bool(os.listdir(path))
    except OSError:
        return True
