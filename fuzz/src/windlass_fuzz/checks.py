"""The checks of `windlass doctor` for fuzzing: the programs that it starts."""

import shutil
from collections.abc import Iterator

TOOLS = (
    ("git", "git", "needed to fetch commits"),
    ("fuzz engine libfuzzer", "clang++", "needed to build targets for it"),
    ("fuzz engine afl", "afl-fuzz", "needed to run it"),
)


def check() -> Iterator[tuple[str, str, str]]:
    """Yields whether each program that fuzzing may start is installed."""
    for name, program, why in TOOLS:
        path = shutil.which(program)
        yield (name, "ok", path) if path else (name, "note", f"{program} not found: {why}")
