"""`windlass login`, `logout`, `whoami` and `dashboard`: signing in, here and in a browser."""

import asyncio

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Json
from windlass.cli.output.text import BOLD_GREEN, print_answer, say, warn
from windlass.client.login import DeviceCode, Login, Logins, sign_in
from windlass.client.settings import server_address, trust_for
from windlass.client.transport import Transport
from windlass.messages.access import LinkCreated, LoginSettings, WhoAmI


def login(*, at: Connection = HERE) -> None:
    """Sign in at the server's identity provider, in a browser on any device.

    The login is kept for this server, in a file that only you can read. Commands and clients use
    it when no token is given.
    """
    who = asyncio.run(_sign_in(at, server_address(at.server, at.data)))
    say(f"signed in as {_described(who)}", BOLD_GREEN)


def logout(*, at: Connection = HERE) -> None:
    """Forget the login at the server."""
    gone = Logins().remove(server_address(at.server, at.data))
    say("done" if gone else "nothing to do")


def whoami(*, at: Connection = HERE, json: Json = False) -> None:
    """Show who you are to the server, and what you may do there."""
    who = at.call("GET", "/api/v1/whoami", WhoAmI)
    print_answer(who, json, _described(who))


async def _sign_in(at: Connection, server: str) -> WhoAmI:
    transport = Transport(server, trust=trust_for(server, at.tls_ca))
    try:
        found = await transport.call("GET", "/auth/settings", LoginSettings)
        tokens = await sign_in(found.issuer, found.client_id, found.scopes, _show_code)
        transport.token = tokens.id_token
        who = await transport.call("GET", "/api/v1/whoami", WhoAmI)
    finally:
        await transport.close()
    kept = Login(found.issuer, found.client_id, tokens.id_token, tokens.refresh_token)
    Logins().keep(server, kept)
    return who


def _show_code(code: DeviceCode) -> None:
    warn(f"Open {code.verification_uri} and enter the code {code.user_code}")
    if code.verification_uri_complete:
        warn(f"or open {code.verification_uri_complete}")


def _described(who: WhoAmI) -> str:
    where = f"namespaces {', '.join(who.namespaces)}" if who.namespaces else "all namespaces"
    return f"{who.name} ({who.role}, {where})"


def dashboard(*, at: Connection = HERE) -> None:
    """Print a link to the server's web page that signs you in, once and within ten minutes."""
    made = at.call("POST", "/auth/links", LinkCreated)
    say(server_address(at.server, at.data).rstrip("/") + made.path)
