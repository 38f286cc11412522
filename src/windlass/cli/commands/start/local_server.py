"""What `up` and `server` share: data directory, published address, signals, flags of plug-ins."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Iterator
from dataclasses import fields, make_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple

from cyclopts import Group, Parameter

from windlass.assembly.stores import make_private
from windlass.client.settings import announce, retract
from windlass.domain.values.errors import InvalidInput
from windlass.plugins import working_plugins
from windlass.server.services import ServerServices
from windlass.server.sign_in.routes import LINK_PATH


def prepare_data(directory: Path) -> None:
    """Creates the data directory; raises `InvalidInput` if it is not usable."""
    try:
        make_private(directory)
    except OSError as error:
        expected = f"a directory this user can write to ({error.strerror})"
        raise InvalidInput("data", expected, str(directory)) from None
    if not os.access(directory, os.W_OK | os.X_OK):
        raise InvalidInput("data", "a directory this user can write to", str(directory))


def local_address(address: str) -> str:
    """Returns the address for clients on this machine if the server listens on all interfaces."""
    return address.replace("//0.0.0.0:", "//127.0.0.1:").replace("//[::]:", "//[::1]:")


async def sign_in_link(services: ServerServices, address: str, token: str) -> str:
    """Returns a link to the dashboard that signs in once with this token."""
    who = await services.access.identify(token)
    if who is None:
        return address
    code, _ = await services.access.create_link(who)
    return f"{address}{LINK_PATH}{code}"


@contextlib.contextmanager
def announced(directory: Path, address: str) -> Iterator[None]:
    """Leaves the address in the data directory while the server runs, for local commands.

    A server that cannot write there, as in a container, goes without.
    """
    try:
        make_private(directory)
        announce(directory, address)
    except OSError:
        yield
        return
    try:
        yield
    finally:
        retract(directory)


def notify_ready() -> None:
    """Tells systemd that the service is ready, if its unit has Type=notify."""
    address = os.environ.pop("NOTIFY_SOCKET", None)
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
            told.sendto(b"READY=1", address.replace("@", "\0", 1))


class Stopping(NamedTuple):
    """What signals ask for: to stop when running jobs have ended, or at once."""

    soon: asyncio.Event
    at_once: asyncio.Event

    def ask(self) -> None:
        """Stops soon when called first, at once when called again."""
        (self.at_once if self.soon.is_set() else self.soon).set()


def obey_signals() -> Stopping:
    """Returns the events that SIGTERM and SIGINT set; a second one asks to stop at once."""
    stopping = Stopping(asyncio.Event(), asyncio.Event())
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.ask)
    return stopping


PLUGINS: Final = Group("Options of plug-ins", help="See `windlass plugins`.", sort_key=9)


def _flags() -> Iterator[tuple[str, Any, None]]:
    for plugin in working_plugins():
        for option, text in plugin.server_options.items():
            parameter = Parameter(
                name=f"--{option}", help=text, group=PLUGINS, consume_multiple=False
            )
            yield option.replace("-", "_"), Annotated[list[str] | None, parameter], None


if TYPE_CHECKING:

    class PluginFlags:
        """Every option of a plug-in as a flag; None if it was not given."""

else:
    PluginFlags = Parameter(name="*")(
        make_dataclass(
            "PluginFlags",
            list(_flags()),
            namespace={"__module__": __name__},  # Without it, cyclopts treats it as a builtin type.
            frozen=True,
            kw_only=True,
        )
    )

NO_PLUGIN_FLAGS: Final = PluginFlags()


def plugin_options(flags: PluginFlags) -> dict[str, tuple[str, ...]]:
    """Returns the options that were given, by name."""
    given = {
        field.name.replace("_", "-"): getattr(flags, field.name)
        for field in fields(flags)  # type: ignore[arg-type]
    }
    return {option: tuple(values) for option, values in given.items() if values}
