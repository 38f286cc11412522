"""Uids for jobs of a worker that is not root: those which the system has set aside for its user.

/etc/subuid and /etc/subgid name them, and `newuidmap` and `newgidmap` (package uidmap) put them
into a user namespace. There the worker's user is root, and each attempt has a uid of its own.
"""

import os
import pwd
import shutil
import subprocess
from pathlib import Path
from typing import Final, NamedTuple

from windlass.domain.values.errors import WindlassError
from windlass.worker.keeper.walls.namespaces import make_users

PROGRAMS: Final = ("newuidmap", "newgidmap")
FILES: Final = (Path("/etc/subuid"), Path("/etc/subgid"))
PLACE: Final = "/var/tmp/windlass-{}"  # nosec B108 - it is looked at who owns it
PATIENCE_S: Final = 10


class NoSubordinateUids(WindlassError):
    """This user has none, or they cannot be used."""

    code = "no_subordinate_uids"


class Share(NamedTuple):
    """The ids that are set aside: so many from `first` on."""

    first: int
    size: int


def place_of_user() -> Path:
    """Returns the folder below which jobs of this user's workers have theirs."""
    return Path(PLACE.format(os.geteuid()))


def find_share() -> Share:
    """Returns the ids of this user, the same as uids and as gids; raises `NoSubordinateUids`."""
    for program in PROGRAMS:
        if shutil.which(program) is None:
            raise NoSubordinateUids(
                f"the worker does not run as root, and {program} (package uidmap) is not installed"
            )
    uids, gids = (_read_share(file) for file in FILES)
    first = max(uids.first, gids.first)
    last = min(uids.first + uids.size, gids.first + gids.size)
    if last <= first:
        raise NoSubordinateUids("the uids and gids set aside for the worker's user differ")
    return Share(first, last - first)


def make_namespace(share: Share) -> int:
    """Returns a user namespace with these ids, in which this user is root.

    Raises `NoSubordinateUids`.
    """
    try:
        return make_users(lambda pid: _assign(pid, share))
    except OSError as error:
        raise NoSubordinateUids(f"user namespaces do not work here ({error.strerror})") from error


def _assign(pid: int, share: Share) -> None:
    same = [str(share.first), str(share.first), str(share.size)]
    for program, own in zip(PROGRAMS, (os.geteuid(), os.getegid()), strict=True):
        done = subprocess.run(
            [program, str(pid), "0", str(own), "1", *same],
            capture_output=True, text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
        if done.returncode != 0:
            raise NoSubordinateUids(f"{program} failed: {done.stderr.strip()}")


def _read_share(file: Path) -> Share:
    """Returns the first ids that a file sets aside for this user, by name or uid."""
    uid = os.geteuid()
    names = {str(uid)}
    try:
        names.add(pwd.getpwuid(uid).pw_name)
    except KeyError:
        pass
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        name, _, numbers = line.partition(":")
        first, _, count = numbers.partition(":")
        if name in names and first.isdigit() and count.isdigit() and int(count) > 0:
            return Share(int(first), int(count))
    raise NoSubordinateUids(
        f"the worker does not run as root, and {file} sets nothing aside for its user"
    )
