"""The name under which another process can import the program that runs here."""

import sys
from pathlib import PurePath


def name_of_main() -> str | None:
    """Returns the name under which another process can import the main module."""
    main = sys.modules["__main__"]
    spec = getattr(main, "__spec__", None)
    if spec is not None:
        return str(spec.name)
    stem = PurePath(getattr(main, "__file__", None) or "").stem
    return stem if stem.isidentifier() else None
