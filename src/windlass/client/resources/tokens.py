"""Tokens, as clients handle them."""

from collections.abc import Sequence
from typing import Final

from windlass.client.calls import Calls
from windlass.domain.values.errors import InvalidInput, NotFound
from windlass.messages.access import (
    RotateRequest,
    TokenCreated,
    TokenInfo,
    TokenList,
    TokenRequest,
)
from windlass.messages.workers import Changed

PATH: Final = "/api/v1/tokens"


class AsyncTokens:
    """The tokens within the caller's namespaces; each is given by its name or id."""

    def __init__(self, transport: Calls) -> None:
        self._call = transport.call

    async def list(self) -> list[TokenInfo]:
        """Returns all tokens and sessions, without their secrets."""
        return (await self._call("GET", PATH, TokenList)).tokens

    async def create(
        self,
        name: str,
        role: str,
        *,
        namespaces: Sequence[str] = (),
        expires: float | str | None = None,
    ) -> TokenCreated:
        """Creates a token; `token` of the answer is its secret, which is shown only now.

        Without `namespaces` it is for all of them, and without `expires` the server's setting
        counts.
        """
        request = TokenRequest(name=name, role=role, namespaces=tuple(namespaces), expires=expires)
        return await self._call("POST", PATH, TokenCreated, request)

    async def rotate(
        self, token: int | str, *, grace: float | str = 0, expires: float | str | None = None
    ) -> TokenCreated:
        """Replaces a token by a new one; the old one is valid for `grace` more."""
        path = f"{PATH}/{await self._number(token)}/rotate"
        return await self._call(
            "POST", path, TokenCreated, RotateRequest(grace=grace, expires=expires)
        )

    async def revoke(self, token: int | str) -> bool:
        """Revokes a token, or ends a session; returns whether that was new."""
        path = f"{PATH}/{await self._number(token)}"
        return (await self._call("DELETE", path, Changed)).applied

    async def _number(self, token: int | str) -> int:
        """Returns the id of a token that is given by its name: of the one that is valid."""
        if isinstance(token, int):
            return token
        found = [one for one in await self.list() if one.name == token]
        if not found:
            raise NotFound("token", token)
        valid = [one for one in found if one.revoked_at is None]
        if len({one.namespaces for one in valid}) > 1:
            known = ", ".join(f"{one.id} ({', '.join(one.namespaces)})" for one in valid)
            raise InvalidInput("token", f"an id, since several have this name: {known}", token)
        return (valid or found)[-1].id
