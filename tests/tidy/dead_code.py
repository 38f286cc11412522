"""Report functions, classes, methods and imports that nothing uses.

vulture finds them. Its findings about variables are left out: fields of records and members
of enumerations are read by stores and by users, not always by name. What is used in a way
that vulture cannot see stands in `allowed.toml`, under `unused`, with the reason.
"""

import os
import sys
import tomllib
from collections.abc import Iterable
from pathlib import Path

from vulture import Vulture

ALLOWED = Path(__file__).with_name("allowed.toml")
KINDS = {"class", "function", "import", "method", "property", "unreachable_code"}

# Called by a tool or a protocol of Python, so that no line of ours does.
CALLED_BY_TOOLS = ["test_*", "Test*", "pytest_*", "__*__", "_generate_next_value_", "_missing_"]
DECORATED_FOR_TOOLS = [
    "@pytest.fixture*",
    "@pytest.hookimpl*",
    "@given*",
    "@rule*",
    "@initialize*",
    "@invariant*",
    "@windlass.task*",
    # Routes and commands, which a framework calls.
    "@routes.*",
    "@*_routes.*",
    "@app.get*",
    "@*.command*",
    "@*.default",
    "@queuer.entrypoint*",
]


def complaints(folders: Iterable[str], allowed: dict[str, str]) -> list[str]:
    """What nothing uses, and which allowances are no longer needed."""
    vulture = Vulture(ignore_names=CALLED_BY_TOOLS, ignore_decorators=DECORATED_FOR_TOOLS)
    vulture.scavenge(list(folders))
    unused = [item for item in vulture.get_unused_code() if item.typ in KINDS]
    found = [
        f"{os.path.relpath(item.filename)}:{item.first_lineno}: {item.message}"
        for item in unused
        if item.name not in allowed
    ]
    needless = sorted(allowed.keys() - {str(item.name) for item in unused})
    return found + [f"{ALLOWED.name}: {name} is used; remove it there" for name in needless]


def main() -> int:
    allowed: dict[str, str] = tomllib.loads(ALLOWED.read_text())["unused"]
    found = complaints(sys.argv[1:], allowed)
    print("\n".join(found) or "No dead code.")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
