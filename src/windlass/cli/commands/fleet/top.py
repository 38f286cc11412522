"""`windlass top`: queues, workers, rates and jobs at a glance."""

from windlass.cli.options.connection import HERE, RECONNECT, Connection, WaitForServer
from windlass.cli.options.flags import Flag, Json, Limit
from windlass.cli.output.text import print_json


def top(
    *,
    once: Flag = False,
    limit: Limit = 15,
    reconnect: WaitForServer = RECONNECT,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Show queues, workers, rates and jobs, and draw them again every second until Ctrl-C.

    Parameters
    ----------
    once
        Draw them once, which is also what happens without a terminal.
    limit
        The maximum number of jobs to show; a small terminal shows fewer.
    """
    from windlass.cli.output.live.refresh import show_live
    from windlass.cli.output.live.top_view import Overview, draw

    with at.client(reconnect) as client:
        overview = Overview(client, limit)
        if json:
            print_json(overview.look())
            return
        show_live(client, lambda room, height: draw(overview.look(), room, height), once)
