"""The lists in a worker's metadata that decide whose jobs it takes: tasks and namespaces.

A list that cannot be read, or has unknown names, would admit what its author wanted to keep out. So
it is refused wherever it is set.
"""

from collections.abc import Collection, Mapping
from typing import Final

from windlass.domain.matching.matching import ALLOWLIST, DENYLIST
from windlass.domain.matching.shapes import NAMESPACES
from windlass.domain.tasks.built_in import KINDS
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.names import did_you_mean, is_name

BUILT_IN: Final = frozenset(kind.name for kind in KINDS)
LISTS: Final = {DENYLIST: "tasks", ALLOWLIST: "tasks", NAMESPACES: "namespaces"}
SIMILAR: Final = 0.8  # names this similar count as misspelt
MAX_SHOWN: Final = 10


def check_lists(metadata: Mapping[str, object], field: str) -> None:
    """Raises `InvalidInput` unless each of the lists holds names, or is a single name."""
    for key, of in LISTS.items():
        value = metadata.get(key, ())
        names = [value] if isinstance(value, str) else value
        if not isinstance(names, list | tuple) or not all(map(_is_name, names)):
            raise InvalidInput(f"{field}.{key}", f"a list of names of {of}", value)


def check_own_lists(metadata: Mapping[str, object], field: str) -> None:
    """Raises `InvalidInput` if a worker's own description denies a task by a misspelt name.

    It may know tasks of its own, so its names are only compared with each other and with the tasks
    that come with Windlass.
    """
    known = BUILT_IN | names_in(metadata, ALLOWLIST)
    for name in names_in(metadata, DENYLIST) - known:
        similar = did_you_mean(name, known, SIMILAR)
        if similar:
            raise InvalidInput(f"{field}.{DENYLIST}", "names of known tasks", name, similar)


def check_tasks(metadata: Mapping[str, object], known: Collection[str], field: str) -> None:
    """Raises `InvalidInput` if the lists name unknown tasks.

    An allowed task may come with a worker that does not exist yet, so it is only refused if it
    looks like a known one. A denied task must be known: otherwise the list would deny nothing.
    """
    for key in (DENYLIST, ALLOWLIST):
        for name in sorted(names_in(metadata, key).difference(known)):
            similar = did_you_mean(name, known, SIMILAR)
            if similar or key == DENYLIST:
                more = " …" if len(known) > MAX_SHOWN else ""
                shown = ", ".join(sorted(known)[:MAX_SHOWN]) + more
                expected = f"tasks that a worker or a job has named ({shown})"
                raise InvalidInput(f"{field}.{key}", expected, name, similar)


def names_in(metadata: Mapping[str, object], key: str) -> set[str]:
    """Returns the names in one of these lists."""
    value = metadata.get(key, ())
    names = value if isinstance(value, list | tuple) else (value,)
    return {name for name in names if isinstance(name, str)}


def _is_name(value: object) -> bool:
    return isinstance(value, str) and is_name(value)
