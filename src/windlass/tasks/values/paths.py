"""`Path` parameters: a local file is uploaded, and arrives as a path to a copy."""

from pathlib import Path
from typing import Any

from windlass.domain.tasks.references import FILE
from windlass.tasks.local_files import LocalFile
from windlass.tasks.values.codec import Codec, Misfit


class PathCodec(Codec):
    """A file. It is encoded as a `LocalFile`, and decoded to the path where the worker placed
    it.
    """

    name = "Path"
    kinds = frozenset({str})

    def encode(self, value: Any) -> Any:
        reference = getattr(type(value), "__windlass_file__", None)
        if reference is not None:
            return {FILE: reference(value)}
        if not isinstance(value, Path):
            return self.refuse(value)
        if not value.is_file():
            what = "a directory" if value.is_dir() else "which does not exist"
            hint = "it is sent with the job; to name a file on the worker, send its path as str"
            raise Misfit("a file on this machine", f"{value}, {what}", hint)
        return LocalFile(value)

    def decode(self, json: Any) -> Any:
        if type(json) is not str:
            raise self.reject(json)
        return Path(json)


def may_hold_files(codec: Codec) -> bool:
    """Returns whether a value of this annotation can contain a `Path`."""
    seen: set[int] = set()
    waiting = [codec]
    while waiting:
        found = waiting.pop()
        if isinstance(found, PathCodec):
            return True
        if id(found) not in seen:  # a class may contain itself
            seen.add(id(found))
            waiting.extend(found.parts())
    return False
