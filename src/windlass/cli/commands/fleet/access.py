"""Who may call a server: `login`, `logout`, `whoami`, `dashboard` and `tokens`."""

import asyncio
from typing import Annotated

from cyclopts import App, Parameter

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Json, Many
from windlass.cli.output.tables import Layout, print_rows
from windlass.cli.output.text import BOLD_GREEN, print_answer, print_change, say, warn
from windlass.client.login import DeviceCode, Login, Logins, sign_in
from windlass.client.settings import server_address, trust_for
from windlass.client.transport import Transport
from windlass.messages.access import (
    LinkCreated,
    LoginSettings,
    TokenCreated,
    TokenList,
    TokenRequest,
    WhoAmI,
)
from windlass.messages.workers import Changed


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


Token = Annotated[str, Parameter(help="The token's id or name, as `windlass tokens` shows it.")]

tokens = App(name="tokens", help="Create, list, rotate and revoke tokens.")


@tokens.command(name="list")
@tokens.default
def list_tokens(*, at: Connection = HERE, json: Json = False) -> None:
    """List tokens, without their secrets."""
    found = at.call("GET", "/api/v1/tokens", TokenList).tokens
    rows = [
        (t.id, t.name, t.role, ", ".join(t.namespaces) or "all", t.created_at, t.expires_at,
         t.last_used_at, t.kind, "revoked" if t.revoked_at else "valid")
        for t in found
    ]  # fmt: skip
    columns = (
        "id", "name", "role", "namespaces", "created", "expires", "last used", "kind", "state"
    )  # fmt: skip
    print_rows(
        found, json, columns, rows, "no tokens", Layout(spare=("kind", "created", "last used"))
    )


@tokens.command
def create(
    name: str,
    /,
    *,
    role: str = "submitter",
    namespace: Many = None,
    expires: str | None = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Create a token and print its secret, which is shown only once.

    Parameters
    ----------
    name
        Its name in lists and in the log. Its jobs belong to this name, so it must be unique among
        valid tokens that reach the same namespaces.
    role
        viewer, submitter, operator or admin.
    namespace
        A namespace that it gives access to. Repeatable. Default: all.
    expires
        How long it is valid. Default: the server's access.token_lifetime.
    """
    request = TokenRequest(name=name, role=role, namespaces=tuple(namespace or ()), expires=expires)
    made = at.call("POST", "/api/v1/tokens", TokenCreated, request)
    print_answer(made, json, made.token)


@tokens.command
def rotate(
    token: Token,
    /,
    *,
    grace: str = "0",
    expires: str | None = None,
    at: Connection = HERE,
    json: Json = False,
) -> None:
    """Replace a token with a new one and print its secret, which is shown only once.

    Parameters
    ----------
    grace
        How long the old secret stays valid, such as 1h. Default: it ends at once.
    expires
        How long the new one is valid. Default: as long as the old one was.
    """
    with at.client() as client:
        made = client.tokens.rotate(_id_or_name(token), grace=grace, expires=expires)
    print_answer(made, json, made.token)


@tokens.command
def revoke(token: Token, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Revoke a token; it stops working within 5 s. A worker loses all its tokens."""
    with at.client() as client:
        applied = client.tokens.revoke(_id_or_name(token))
    print_change(Changed(applied), json)


def _id_or_name(token: str) -> int | str:
    return int(token) if token.isascii() and token.isdigit() else token
