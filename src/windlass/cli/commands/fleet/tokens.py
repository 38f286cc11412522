"""`windlass tokens`: create, list and revoke API tokens."""

from typing import Annotated

from cyclopts import App, Parameter

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Json, Many
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import print_change, print_json, say
from windlass.wire.access import TokenCreated, TokenList, TokenRequest
from windlass.wire.workers import Changed

Token = Annotated[int, Parameter(help="The token's id, as `windlass tokens` shows it.")]

tokens = App(name="tokens", help="Create, list and revoke tokens.")


@tokens.command(name="list")
@tokens.default
def list_tokens(*, at: Connection = HERE, json: Json = False) -> None:
    """List tokens, without their secrets."""
    found = at.call("GET", "/api/v1/tokens", TokenList).tokens
    if json:
        print_json(found)
        return
    rows = [
        (t.id, t.name, t.role, ", ".join(t.namespaces) or "all", t.created_at, t.expires_at,
         "revoked" if t.revoked_at else "valid")
        for t in found
    ]  # fmt: skip
    columns = ("id", "name", "role", "namespaces", "created", "expires", "state")
    print_table(columns, rows, "no tokens")


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
        Its name in lists and in the log. Jobs belong to it; no two living tokens have one name.
    role
        viewer, submitter, operator or admin.
    namespace
        A namespace that it gives access to. Repeatable. Default: all.
    expires
        How long it is valid. Default: until it is revoked.
    """
    request = TokenRequest(name=name, role=role, namespaces=tuple(namespace or ()), expires=expires)
    made = at.call("POST", "/api/v1/tokens", TokenCreated, request)
    if json:
        print_json(made)
    else:
        say(made.token)


@tokens.command
def revoke(token: Token, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Revoke a token; it stops working within 5 s. A worker loses all its tokens."""
    print_change(at.call("DELETE", f"/api/v1/tokens/{token}", Changed), json)
