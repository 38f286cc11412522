"""Messages about the server itself, version 1."""

import msgspec


class Health(msgspec.Struct, frozen=True):
    status: str


class ViolationInfo(msgspec.Struct, frozen=True):
    """A violated invariant, and where."""

    invariant: str
    message: str
    job: int
    seq: int


class Verified(msgspec.Struct, frozen=True, omit_defaults=True):
    """The violations found; empty if there are none. `notes` are known losses."""

    violations: list[ViolationInfo]
    notes: list[str] = []


class NamespaceList(msgspec.Struct, frozen=True):
    namespaces: list[str]


class PluginPageInfo(msgspec.Struct, frozen=True):
    """A page of a plug-in: its link in the dashboard, and the right that a caller needs."""

    label: str
    path: str
    needs: str


class PluginInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A plug-in of a server; one that is not `loaded` adds nothing, and its log says why."""

    name: str
    version: str
    loaded: bool
    page: PluginPageInfo | None


class PluginList(msgspec.Struct, frozen=True):
    plugins: list[PluginInfo]


class EventInfo(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the event log."""

    seq: int
    at: str
    kind: str
    job: int | None
    attempt: int | None
    worker: int | None
    source: str | None = msgspec.field(name="from")
    to: str | None
    reason: str | None
    actor: str | None
    line: str


class EventList(msgspec.Struct, frozen=True):
    events: list[EventInfo]
