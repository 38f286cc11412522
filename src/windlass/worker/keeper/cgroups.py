"""Boxes for jobs: cgroups (v2) of their own, which a process cannot leave as it can its group.

They need a folder that was given to the worker: one that the operator names, or the worker's own
cgroup if a service manager delegated it. Everything here is in addition to process groups: without
a box, a job runs anyway.

The standard library only: the keeper imports this file.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

OFF = "off"
AUTO = "auto"
START = "windlass-"  # prefix of the folders that keepers make
AGENTS = "windlass-agents"  # the cgroup of the workers themselves
HOME = "keeper"  # the keeper's own box, so that killing a job's never hits it
CONTROLLERS = ("memory", "pids")
MARKS = ("user.delegate", "trusted.delegate")


def find_cgroup(setting: str) -> str | None:
    """Returns the folder for the boxes of jobs; None if there is none. Raises `ValueError`."""
    if setting == OFF:
        return None
    path = own_cgroup() if setting == AUTO else setting
    if setting == AUTO:
        return path if path is not None and _is_delegated(path) and _is_usable(path) else None
    if path is None or not _is_usable(path):
        raise ValueError(f"{setting} is not a cgroup v2 folder that this user may write to")
    return path


def own_cgroup() -> str | None:
    """Returns the folder of this process's own cgroup v2."""
    mount = _mount_point()
    try:
        with open("/proc/self/cgroup") as file:
            for line in file:
                if line.startswith("0::") and mount is not None:
                    return mount + line[3:].strip().rstrip("/")
    except OSError:
        pass
    return None


def _mount_point() -> str | None:
    try:
        with open("/proc/self/mountinfo") as file:
            for line in file:
                before, _, after = line.partition(" - ")
                if after.startswith("cgroup2 "):
                    return before.split()[4]
    except OSError:
        pass
    return None


def _is_delegated(path: str) -> bool:
    for mark in MARKS:
        try:
            if os.getxattr(path, mark) == b"1":
                return True
        except OSError:
            continue
    return False


def _is_usable(path: str) -> bool:
    processes = os.path.join(path, "cgroup.procs")
    return os.access(path, os.W_OK | os.X_OK) and os.access(processes, os.W_OK)


class Box:
    """One job's cgroup."""

    __slots__ = ("path",)

    def __init__(self, path: str) -> None:
        self.path = path

    @property
    def passed(self) -> str:
        """Returns the limit for which the kernel has killed or refused a process; empty if none."""
        if self._number("memory.events", "oom_kill"):
            return "memory"
        return "processes" if self._number("pids.events", "max") else ""

    @property
    def cpu_seconds(self) -> float:
        """Returns the CPU time of all processes that were ever in it."""
        return self._number("cpu.stat", "usage_usec") / 1_000_000

    def _number(self, file: str, name: str) -> int:
        for line in _read(f"{self.path}/{file}").splitlines():
            key, _, value = line.partition(" ")
            if key == name and value.isdigit():
                return int(value)
        return 0

    def kill(self) -> None:
        """Kills every process in it, wherever it is in the tree."""
        if not _write(f"{self.path}/cgroup.kill", "1"):
            for pid in _read(f"{self.path}/cgroup.procs").split():
                try:
                    os.kill(int(pid), 9)
                except (ProcessLookupError, PermissionError):
                    pass

    def limit(self, memory: int, processes: int, layers: int = 0) -> None:
        """Limits its processes together, if this machine has the controllers for that.

        `layers` further processes do not belong to the job.
        """
        if processes:
            _write(f"{self.path}/pids.max", str(processes + layers))
        if memory and _write(f"{self.path}/memory.max", str(memory)):
            _write(f"{self.path}/memory.swap.max", "0")
            _write(f"{self.path}/memory.oom.group", "1")

    def remove(self) -> bool:
        try:
            os.rmdir(self.path)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


class Boxes:
    """The boxes of one keeper, below a folder of its own."""

    def __init__(self, root: str) -> None:
        remove_leftovers(root)
        self._folder = f"{root}/{START}{os.getpid()}"
        os.mkdir(self._folder)
        if any(name in CONTROLLERS for name in _read(f"{root}/cgroup.controllers").split()):
            _make_way(root)
        # Without this right a box has no limits.
        for folder in (root, self._folder):
            for controller in CONTROLLERS:
                _write(f"{folder}/cgroup.subtree_control", f"+{controller}")
        self.controllers = tuple(_read(f"{self._folder}/cgroup.subtree_control").split())
        self._home = f"{self._folder}/{HOME}"
        os.mkdir(self._home)
        self._go(self._home)
        self._made = 0
        self._emptying: list[Box] = []

    @contextmanager
    def inside(self) -> Iterator[Box | None]:
        """Enters a new box with this process: what it starts meanwhile is born there."""
        self._made += 1
        box = Box(f"{self._folder}/{self._made}")
        try:
            os.mkdir(box.path)
        except OSError:
            yield None  # The machine allows no more: a job without a box is better than none.
            return
        self._go(box.path)
        try:
            yield box
        except BaseException:
            self._emptying.append(box)
            raise
        finally:
            self._go(self._home)

    def end(self, box: Box) -> None:
        """Kills what is left in a box; the box is removed when the kernel has released it."""
        box.kill()
        self._emptying.append(box)
        self.tidy()

    def tidy(self) -> bool:
        """Removes the boxes that have become empty; returns whether any is left."""
        self._emptying = [box for box in self._emptying if not box.remove()]
        return bool(self._emptying)

    def close(self) -> None:
        """Removes everything when the keeper ends; the next keeper removes its own box."""
        for name in os.listdir(self._folder):
            if name != HOME and os.path.isdir(f"{self._folder}/{name}"):
                box = Box(f"{self._folder}/{name}")
                box.kill()
                box.remove()
        self._go(os.path.dirname(self._folder))
        for path in (self._home, self._folder):
            Box(path).remove()

    def _go(self, path: str) -> None:
        """Moves this process. Raises if that fails: it would be killed with the job in its box."""
        if not _write(f"{path}/cgroup.procs", "0"):
            raise OSError(f"cannot move to {path}")


def _make_way(root: str) -> None:
    """Moves the processes of a folder into a subfolder: only an empty one can set limits."""
    pids = _read(f"{root}/cgroup.procs").split()
    if not pids:
        return
    leaf = f"{root}/{AGENTS}"
    try:
        os.makedirs(leaf, exist_ok=True)
    except OSError:
        return
    for pid in pids:
        _write(f"{leaf}/cgroup.procs", pid)


def remove_leftovers(root: str) -> None:
    """Removes the cgroups of killed keepers, whose pids are gone."""
    for name in os.listdir(root):
        pid = name.removeprefix(START)
        if pid == name or not pid.isdigit() or os.path.exists(f"/proc/{pid}"):
            continue
        folder = f"{root}/{name}"
        for inner in os.listdir(folder):
            if os.path.isdir(f"{folder}/{inner}"):
                box = Box(f"{folder}/{inner}")
                box.kill()
                box.remove()
        Box(folder).remove()


def _read(path: str) -> str:
    try:
        with open(path) as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, text.encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True
