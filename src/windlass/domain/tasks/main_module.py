"""The name under which another process can import the program that runs here."""

import sys
from pathlib import PurePath
from typing import Final

# How the program's own module is called in itself, and in processes of `multiprocessing`.
MAIN: Final = frozenset({"__main__", "__mp_main__"})


def importable_name(module: str) -> str | None:
    """Returns the name under which another process can import a module; None if it cannot."""
    return name_of_main() if module in MAIN else module


def name_of_main() -> str | None:
    """Returns the name under which another process can import the main module."""
    # While a process of `multiprocessing` imports the program, its `__main__` is another.
    main = sys.modules.get("__mp_main__") or sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    stem = PurePath(getattr(main, "__file__", None) or "").stem
    return stem if stem.isidentifier() else None
