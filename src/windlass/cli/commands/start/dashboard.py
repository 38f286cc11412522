"""`windlass dashboard`: a link that signs in to the web page."""

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.output.text import say
from windlass.client.settings import server_address
from windlass.wire.access import LinkCreated


def dashboard(*, at: Connection = HERE) -> None:
    """Print a link to the server's web page that signs you in, once and within ten minutes."""
    made = at.call("POST", "/auth/links", LinkCreated)
    say(server_address(at.server, at.data).rstrip("/") + made.path)
