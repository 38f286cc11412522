"""Where the files of a workflow come from."""

import os
import sys
from pathlib import Path
from typing import Final, Protocol

from windlass.domain.values.errors import NOT_KNOWN
from windlass.workflows.nodes import Faults, Misdescribed, Node, Place
from windlass.workflows.reading import SIZE_LIMIT, read_text

STANDARD_INPUT: Final = "-"
OPENED: Final = "the file"  # how errors name the file to submit


class Files(Protocol):
    """Finds the file that `workflow:` names; `faults` are the errors in files read so far."""

    faults: Faults

    def find(self, name: Node, field: str) -> tuple[str, Node]:
        """Returns the file's identity and its document."""
        ...


class LocalFiles:
    """Implements `Files` with local files: paths are relative to the file that names them."""

    def __init__(self) -> None:
        self._read: dict[str, Node] = {}
        self.faults = Faults()

    def find(self, name: Node, field: str) -> tuple[str, Node]:
        text = str(name.value)
        if Path(text).is_absolute():
            raise name.refuse(field, "a path relative to this file")
        path = os.path.normpath(Path(name.place.file).parent / text)
        real = os.path.realpath(path)
        if real not in self._read:
            self._read[real] = self._load(path, name, field)
        return real, self._read[real]

    def open(self, path: Path) -> tuple[str, Node]:
        """Opens the file to submit; `-` is standard input."""
        if str(path) == STANDARD_INPUT:
            content = sys.stdin.buffer.read(SIZE_LIMIT + 1)
            return STANDARD_INPUT, read_text(content, "stdin", self.faults)
        named = Node(str(path), Place(str(path)))
        real = os.path.realpath(path)
        self._read[real] = self._load(str(path), named, OPENED)
        return real, self._read[real]

    def _load(self, path: str, named: Node, field: str) -> Node:
        try:
            with Path(path).open("rb") as file:
                content = file.read(SIZE_LIMIT + 1)
        except OSError as error:
            why = error.strerror or "it does not exist"
            if field == OPENED:  # the beginning of the message
                raise Misdescribed(named.place, field, f"readable: {why}", NOT_KNOWN) from None
            raise Misdescribed(named.place, field, f"a readable file ({why})", path) from None
        return read_text(content, path, self.faults)


class NoFiles:
    """Implements `Files` for data: a nested workflow is part of its job."""

    def __init__(self) -> None:
        self.faults = Faults()

    def find(self, name: Node, field: str) -> tuple[str, Node]:
        raise name.refuse(field, "a workflow, not the name of a file")
