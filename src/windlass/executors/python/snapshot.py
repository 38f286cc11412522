"""Imports the code that a worker has kept: the finder and loader of its function processes.

A process that starts later, perhaps after an edit or a new deployment, imports the same code as
those before it: all processes of a worker run one version until it is restarted. The agent keeps
the modules in its memory (`store.py`) and sends each process its own copies, so that no job can
change what another one runs. The standard library and Windlass are left out.
"""

import importlib.machinery
import marshal
import os
import socket
import sys
import threading
import types
from collections.abc import Callable, Sequence
from importlib.abc import Loader, MetaPathFinder
from pathlib import Path
from typing import Any, Final, NamedTuple

NAME_LIMIT: Final = 200  # bytes; a module with a longer name is not kept
KEPT: Final = b"+"
NOT_KEPT: Final = b"-"
OWN: Final = "windlass"
LEFT_OUT: Final = frozenset({*sys.stdlib_module_names, OWN})


class Kept(NamedTuple):
    """A module whose code is kept."""

    name: str
    file: str
    places: list[str] | None  # where the modules of a package are; None if it is not a package
    code: types.CodeType


def is_keepable(name: str) -> bool:
    """Returns whether modules of this name are kept at all."""
    parts = name.split(".")
    if parts[0] in LEFT_OUT or len(name.encode()) > NAME_LIMIT:
        return False
    return all(part.isidentifier() for part in parts)


class Snapshot(MetaPathFinder):
    """Asks the agent for modules before they are looked for in local files."""

    def __init__(self, ask: Callable[[str], Kept | None]) -> None:
        self._ask = ask

    def install(self) -> None:
        """Puts it in front of all other finders of this process."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self,
        fullname: str,
        _path: Sequence[str] | None = None,
        _target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Returns how to load a module of the user's; None leaves it to others."""
        if not is_keepable(fullname):
            return None
        kept = self._ask(fullname)
        if kept is None:
            return None
        is_package = kept.places is not None
        spec = importlib.machinery.ModuleSpec(
            fullname, KeptLoader(kept), origin=kept.file, is_package=is_package
        )
        spec.has_location = True
        spec.submodule_search_locations = kept.places
        return spec


class KeptLoader(Loader):
    """Loads a kept module; files beside it, and its source, are read from where they are."""

    def __init__(self, kept: Kept) -> None:
        self._kept = kept
        self.path = kept.file
        self.name = kept.name

    def exec_module(self, module: types.ModuleType) -> None:
        """Runs the module's code."""
        exec(self._kept.code, module.__dict__)  # nosec B102: as every import does

    def get_code(self, _fullname: str) -> types.CodeType:
        """Returns the module's code, as `runpy` and others request it."""
        return self._kept.code

    def get_filename(self, _fullname: str) -> str:
        """Returns the file of the module."""
        return self._kept.file

    def is_package(self, _fullname: str) -> bool:
        """Returns whether it has modules of its own."""
        return self._kept.places is not None

    def get_source(self, fullname: str) -> str | None:
        """Returns the source as it is now, for tracebacks."""
        found: str | None = self._file(fullname).get_source(fullname)
        return found

    def get_data(self, path: str) -> bytes:
        """Returns a file that came with the module."""
        return Path(path).read_bytes()

    def get_resource_reader(self, fullname: str) -> Any:
        """Returns a reader with which `importlib.resources` reads files."""
        return self._file(fullname).get_resource_reader(fullname)

    def _file(self, fullname: str) -> Any:
        return importlib.machinery.SourceFileLoader(fullname, self._kept.file)


class Asking:
    """Asks the agent for modules, one at a time, whichever thread imports them."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._lock = threading.Lock()
        self._pid = os.getpid()

    def __call__(self, name: str) -> Kept | None:
        if os.getpid() != self._pid:
            return None  # The connection belongs to the process that this one was forked from.
        with self._lock:
            try:
                self._connection.send(name.encode())
                answer, fds, _, _ = socket.recv_fds(self._connection, 1, 1)
            except OSError:
                return None
        if answer != KEPT or not fds:
            return None
        with open(fds[0], "rb") as file:
            file.seek(0)
            # Only the agent, which runs this Python, is at the other end.
            return Kept(*marshal.loads(file.read()))  # nosec B302


def use_snapshot(connection: socket.socket) -> None:
    """Makes this process import what the others of this worker import, over this connection."""
    Snapshot(Asking(connection)).install()
