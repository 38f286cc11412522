"""What operations work with: the engine, and what is built around it."""

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:  # operations import this module
    from collections.abc import Awaitable, Callable

    from windlass.engine.access import Access
    from windlass.engine.engine import Engine
    from windlass.engine.files.files import Files
    from windlass.engine.graphs import Graphs
    from windlass.engine.history.events import EventReader, WorkerNames
    from windlass.engine.pools.pools import Pools
    from windlass.engine.schedules.reactions import Reactions
    from windlass.engine.schedules.schedules import Schedules
    from windlass.engine.schedules.templates import Templates
    from windlass.messages.jobs import SubmitReply, SubmitRequest
    from windlass.operations.dispatch.call import Call
    from windlass.operations.jobs import Submissions
    from windlass.operations.queries import Queries
    from windlass.operations.queues import LiveDepths
    from windlass.operations.rights import Rights
    from windlass.operations.tasks import WorkersTasks
    from windlass.ports.clock import Clock


class Services(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """What every operation finds; `windlass.assembly.backend` builds it.

    A server has more (`windlass.server.services`), which only its own routes use.
    """

    engine: "Engine"
    queries: "Queries"
    rights: "Rights"
    depths: "LiveDepths"
    submissions: "Submissions"
    graphs: "Graphs"
    new_key: "Callable[[], str]"  # that nobody can guess
    files: "Files"
    access: "Access"
    feed: "EventReader"
    names: "WorkerNames"
    clock: "Clock"
    templates: "Templates"
    schedules: "Schedules"
    reactions: "Reactions"
    pools: "Pools"
    tasks: "WorkersTasks"
    # Submits jobs in a span; None: no spans are exported.
    submit_traced: "Callable[[Call, SubmitRequest], Awaitable[SubmitReply]] | None" = None
