"""What programs of other users can use, also where the tests are run by root."""

import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Final

USER: Final = "windlass-test"
UID: Final = 61_234  # of the user that exists only in tests
SUBORDINATE: Final = 7_340_032  # the first uid that is set aside for it
SUBORDINATES: Final = 65_536


def is_open(path: Path) -> bool:
    """Whether every user can reach a file and read it."""
    real = path.resolve()
    passable = all(folder.stat().st_mode & stat.S_IXOTH for folder in real.parents)
    return passable and bool(real.stat().st_mode & stat.S_IROTH)


def open_python() -> str:
    """A Python that every user can start; it need not have our packages."""
    if is_open(Path(sys.executable)):
        return sys.executable
    for place in ("/usr/bin/python3", "/usr/local/bin/python3"):
        if Path(place).exists() and is_open(Path(place)):
            return place
    raise FileNotFoundError("expected a Python that every user can start, in /usr/bin")


def skip_reason(mode: str) -> str | None:
    """Why the tests of a mode of isolation cannot be run here; None if they can."""
    if mode == "user" and os.geteuid() != 0:
        return "only root can start jobs as other users"
    return None


def become_user(folder: Path, home: Path) -> list[str]:
    """The words that start a program as a user with subordinate uids, who exists only for it.

    The user gets the folder. Only root can do it; raises `FileNotFoundError`.
    """
    etc = folder / "etc"
    etc.mkdir()
    set_aside = f"{USER}:{SUBORDINATE}:{SUBORDINATES}"
    added = {
        "passwd": f"{USER}:x:{UID}:{UID}::{home}:/bin/sh",
        "group": f"{USER}:x:{UID}:",
        "subuid": set_aside,
        "subgid": set_aside,
    }
    steps = ["set -e"]
    for name, line in added.items():
        known = Path("/etc", name)
        if not known.exists():
            raise FileNotFoundError(f"no {known} here, which subordinate uids need")
        (etc / name).write_text(f"{known.read_text().rstrip()}\n{line}\n")
        steps.append(f"mount --bind {etc / name} {known}")
    steps += _show(
        folder / "shown", Path(sys.base_prefix), Path(sys.prefix), Path.cwd(),
        *(Path(entry) for entry in sys.path if entry),
    )  # fmt: skip
    steps.append(f'exec setpriv --reuid {UID} --regid {UID} --clear-groups "$@"')
    script = folder / "as-user"
    script.write_text("\n".join(steps))
    subprocess.run(["chown", "-R", f"{UID}:{UID}", folder], check=True)
    return ["unshare", "--mount", "--propagation", "private", "sh", str(script)]


def _show(place: Path, *needed: Path) -> list[str]:
    """Returns the steps that let another user reach these folders, where a parent is closed."""
    hidden: dict[Path, list[Path]] = {}
    outer: list[Path] = []
    for path in sorted(path for path in set(needed) if path.is_dir()):
        if not outer or not path.is_relative_to(outer[-1]):
            outer.append(path)
    for path in outer:
        closed = next((p for p in reversed(path.parents) if not p.stat().st_mode & 0o001), None)
        if closed is not None:
            hidden.setdefault(closed, []).append(path)
    steps = []
    for closed, paths in hidden.items():
        for number, path in enumerate(paths):
            steps += [f"mkdir -p {place}/{number}", f"mount --bind {path} {place}/{number}"]
        steps.append(f"mount -t tmpfs -o mode=755 none {closed}")
        for number, path in enumerate(paths):
            steps += [f"mkdir -p {path}", f"mount --move {place}/{number} {path}"]
    return steps
