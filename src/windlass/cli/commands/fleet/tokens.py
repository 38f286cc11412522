"""`windlass tokens`: create, list, rotate and revoke API tokens."""

from typing import Annotated

from cyclopts import App, Parameter

from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Json, Many
from windlass.cli.output.tables import Layout, print_rows
from windlass.cli.output.text import print_answer, print_change
from windlass.messages.access import TokenCreated, TokenList, TokenRequest
from windlass.messages.workers import Changed

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
