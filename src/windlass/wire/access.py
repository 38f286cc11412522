"""Messages about tokens and enrolment codes, version 1."""

import msgspec


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new token. `namespaces` empty: all. `expires` is a duration from now, None: never."""

    name: str
    role: str
    namespaces: tuple[str, ...] = ()
    expires: float | str | None = None


class TokenInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A token as it is shown: never the secret."""

    id: int
    name: str
    role: str
    namespaces: tuple[str, ...]
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    worker: int | None = None


class TokenCreated(msgspec.Struct, frozen=True, kw_only=True):
    """The new token, which is shown only once."""

    token: str
    info: TokenInfo


class TokenList(msgspec.Struct, frozen=True):
    tokens: list[TokenInfo]


class CodeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new code; `worker` is the only name it is good for. `takeover` needs a name."""

    expires: float | str = "1h"
    worker: str | None = None
    takeover: bool = False


class CodeCreated(msgspec.Struct, frozen=True, kw_only=True):
    """A single-use code for one worker to enrol with."""

    code: str
    expires_at: str
