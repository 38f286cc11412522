"""Messages about namespaces, version 1."""

import msgspec


class NamespaceLoad(msgspec.Struct, frozen=True, kw_only=True):
    """A namespace: the jobs that workers hold, and those a worker could take now.

    With `more`, the number of ready jobs is a lower bound. `weight` is None for callers who may not
    set it.
    """

    name: str
    running: int
    ready: int
    more: bool = False
    weight: int | None = None


class NamespaceLoads(msgspec.Struct, frozen=True):
    namespaces: list[NamespaceLoad]
