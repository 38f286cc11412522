"""The users that jobs of one worker run as, and the folder which these can reach.

A worker that is root takes uids of its own range. Another one needs subordinate uids, which live
in a user namespace.
"""

import os
import shutil
from pathlib import Path

from windlass.worker.isolation.place import ROOT, UserPlace
from windlass.worker.isolation.subordinate import (
    NoSubordinateUids,
    find_share,
    make_namespace,
    place_of_user,
)
from windlass.worker.isolation.uids import DEFAULT_RANGE, LOCKS, Uids, parse_range
from windlass.worker.keeper.walls.namespaces import run_in_users


class JobUsers:
    """`uids` and `place` can be used once it is open; `namespace` is -1 if they need none."""

    def __init__(self, state: Path, own_range: str) -> None:
        self.is_root = os.geteuid() == 0
        self.namespace = -1
        root = ROOT if self.is_root else place_of_user()
        self.place = UserPlace(state, root, self._remove)
        self.uids = Uids(parse_range(own_range))

    def open(self) -> str | None:
        """Returns why there are none; None if there are. Raises `OSError` if the worker is root."""
        if self.is_root:
            self.place.open()
            return None
        try:
            share = find_share()
            self.namespace = make_namespace(share)
            self.place.open()
        except NoSubordinateUids as error:
            return error.message
        except OSError as error:
            return f"cannot use {self.place.path}: {error.strerror or error}"
        self.uids = Uids(range(share.first, share.first + share.size), locks_of_user())
        return None

    def close(self) -> None:
        """Lets go of everything and removes the folder."""
        self.uids.close()
        if self.is_root or self.namespace >= 0:
            self.place.close()
        if self.namespace >= 0:
            os.close(self.namespace)
            self.namespace = -1

    def _remove(self, folder: Path) -> None:
        """Removes a folder with files of jobs' users."""
        if self.namespace >= 0:
            run_in_users(self.namespace, lambda: shutil.rmtree(folder, ignore_errors=True))
        else:
            shutil.rmtree(folder, ignore_errors=True)


def locks_of_user() -> Path:
    """Returns where uids are locked that are in use."""
    return LOCKS if os.geteuid() == 0 else Path(f"{place_of_user()}-uids")


def try_users() -> tuple[Uids, str | None]:
    """Returns uids for jobs of a worker of this user, and why there are none, without a folder."""
    uids = Uids(parse_range(DEFAULT_RANGE))
    if os.geteuid() == 0:
        return uids, None
    try:
        os.close(make_namespace(find_share()))
    except NoSubordinateUids as error:
        return uids, error.message
    return Uids(range(0), locks_of_user()), None
