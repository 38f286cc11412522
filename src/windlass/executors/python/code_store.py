"""The code of a worker's functions, as it was when a process of the worker first imported it.

The agent keeps it in memory: function processes ask for a module by its name, and the agent finds
its file, reads it and answers with a copy of its code. It runs none of it. So no job can change
what others get, and no job can read a file through it that it could not read itself.
"""

import asyncio
import contextlib
import importlib
import marshal
import os
import socket
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import (
    BuiltinImporter,
    FrozenImporter,
    ModuleSpec,
    PathFinder,
    SourceFileLoader,
)
from pkgutil import get_importer
from typing import Any

from windlass.executors.python.messages import send_file
from windlass.executors.python.snapshot import KEPT, NAME_LIMIT, NOT_KEPT, Kept, is_keepable

Stamp = tuple[int, int] | None


class CodeStore:
    """Keeps modules below `path` whose files jobs may read."""

    def __init__(
        self, path: Sequence[str], readable: Callable[[str], bool] = lambda _: True
    ) -> None:
        self._path = list(path)
        self._readable = readable
        self._kept: dict[str, Kept] = {}
        self._stamps: dict[str, Stamp] = {}  # stamps of the files when they were read
        self._asking: set[socket.socket] = set()  # our ends of open connections

    @property
    def files(self) -> list[str]:
        """Returns the files of all kept modules."""
        return list(self._stamps)

    def changed_file(self) -> str | None:
        """Returns a file that has changed since it was kept; None if there is none."""
        for file, stamp in self._stamps.items():
            if stamp_of(file) != stamp:
                return file
        return None

    def file_of(self, name: str) -> str | None:
        """Returns the file of a module as it would be found now; None if there is none."""
        try:
            spec = self._find(name) if is_keepable(name) else None
        except (OSError, ValueError, ImportError):
            return None
        return None if spec is None else spec.origin

    def keep(self, name: str) -> bool:
        """Keeps a module, unless it is already kept; returns whether it is kept now."""
        if name in self._kept:
            return True
        if not is_keepable(name):
            return False
        try:
            spec = self._find(name)
            if spec is None or type(spec.loader) is not SourceFileLoader or not spec.origin:
                return False
            if not self._readable(spec.origin):
                return False
            stamp = stamp_of(spec.origin)
            self._kept[name] = _read(name, spec)
            self._stamps[spec.origin] = stamp
        except (OSError, SyntaxError, ValueError, ImportError):
            return False  # Importing it reports the error.
        return True

    def _find(self, name: str) -> ModuleSpec | None:
        above = name.rpartition(".")[0]
        places = self._places(above) if above else self._path
        if places is None:
            return None
        found = _find_in(name, places)
        if found is None:
            importlib.invalidate_caches()  # It may have just been created.
            found = _find_in(name, places)
        return found if found is not None or above else _find_elsewhere(name)

    def _places(self, package: str) -> list[str] | None:
        """Returns the folders of a package's modules, even without a file of its own."""
        if self.keep(package):
            return self._kept[package].places
        spec = self._find(package)
        return None if spec is None or spec.loader is not None else spec.submodule_search_locations

    def connect(self) -> socket.socket:
        """Returns the other end of a new connection, over which a process asks for modules."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.setblocking(False)
        loop = asyncio.get_running_loop()
        loop.add_reader(ours, self._answer, ours, loop)
        self._asking.add(ours)
        return theirs

    def close(self) -> None:
        """Closes all connections; the processes that asked have ended."""
        for connection in list(self._asking):
            self._end(connection, asyncio.get_running_loop())

    def _end(self, connection: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        self._asking.discard(connection)
        loop.remove_reader(connection)
        connection.close()

    def _answer(self, connection: socket.socket, loop: asyncio.AbstractEventLoop) -> None:
        with contextlib.suppress(BlockingIOError):
            try:
                name = connection.recv(NAME_LIMIT + 1)
                if name:
                    self._hand_over(connection, name.decode("utf-8", "replace"))
                    return
            except BlockingIOError:
                raise
            except OSError:
                pass
            self._end(connection, loop)

    def _hand_over(self, connection: socket.socket, name: str) -> None:
        """Sends a copy of a module's code, which no other process gets."""
        if not self.keep(name):
            connection.send(NOT_KEPT)
            return
        send_file(connection, KEPT, marshal.dumps(tuple(self._kept[name])))


def _read(name: str, spec: ModuleSpec) -> Kept:
    """Compiles a module without running it."""
    loader: Any = spec.loader
    places = spec.submodule_search_locations
    found = None if places is None else list(places)
    return Kept(name, str(spec.origin), found, loader.get_code(name))


def _find_in(name: str, places: Sequence[str]) -> ModuleSpec | None:
    """Finds a module in folders; a package without a file of its own may be in several."""
    portions: list[str] = []
    for place in places:
        finder = get_importer(place)
        spec = None if finder is None else finder.find_spec(name)
        if spec is not None and spec.loader is not None:
            return spec
        portions += [] if spec is None else spec.submodule_search_locations or []
    if not portions:
        return None
    found = ModuleSpec(name, None, is_package=True)
    found.submodule_search_locations = portions
    return found


def _find_elsewhere(name: str) -> ModuleSpec | None:
    """Asks the finders of packages that are installed as links to their sources."""
    for finder in sys.meta_path:
        if finder not in (BuiltinImporter, FrozenImporter, PathFinder):
            spec = finder.find_spec(name, None)
            if spec is not None:
                return spec
    return None


def stamp_of(file: str) -> Stamp:
    """Returns a stamp that changes when the file does; None if it cannot be read."""
    try:
        found = os.stat(file)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size


def search_path(env_path: str | None, own: Sequence[str]) -> list[str]:
    """Returns where function processes look for modules: here, PYTHONPATH, then Python's own."""
    named = (env_path or "").split(os.pathsep)
    entries = [os.getcwd(), *(os.path.abspath(entry) for entry in (*named, *own) if entry)]
    return list(dict.fromkeys(entries))
