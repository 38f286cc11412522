"""Messages about tokens and enrolment codes, version 1."""

import msgspec


class TokenRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new token. `namespaces` empty: all. `expires` is a duration from now.

    Without `expires`, the server's setting `access.token_lifetime` applies.
    """

    name: str
    role: str
    namespaces: tuple[str, ...] = ()
    expires: float | str | None = None


class RotateRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new secret. The old one stays valid for `grace`; without `expires`, the lifetime stays the
    same.
    """

    grace: float | str = 0
    expires: float | str | None = None


class TokenInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A token or session as it is shown: never the secret."""

    id: int
    name: str
    role: str
    namespaces: tuple[str, ...]
    created_at: str
    expires_at: str | None
    revoked_at: str | None
    worker: int | None = None
    last_used_at: str | None = None  # up to a minute late
    kind: str = "token"  # or session


class TokenCreated(msgspec.Struct, frozen=True, kw_only=True):
    """The new token, which is shown only once."""

    token: str
    info: TokenInfo


class TokenList(msgspec.Struct, frozen=True):
    tokens: list[TokenInfo]


class LoginSettings(msgspec.Struct, frozen=True, kw_only=True):
    """Where `windlass login` signs in."""

    issuer: str
    client_id: str
    scopes: tuple[str, ...]


class WhoAmI(msgspec.Struct, frozen=True, kw_only=True):
    """The caller as the server sees it. `namespaces` empty: all.

    `actions` are those it may do somewhere: in its namespaces, or everywhere. `at` is the number of
    the newest event: a page that follows changes after `at` misses nothing.
    """

    name: str
    role: str
    namespaces: tuple[str, ...]
    actions: tuple[str, ...] = ()
    at: int = 0


class SignInWays(msgspec.Struct, frozen=True, kw_only=True):
    """How people can sign in on the page: always with a token, and with `oidc` also at their
    provider.
    """

    oidc: bool


class SessionRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What opens a session: a token, or the code of a sign-in link.

    A link may come from anybody. If the browser is signed in as somebody else, the link is refused
    unless `replace` confirms it.
    """

    token: str | None = None
    code: str | None = None
    replace: bool = False


class LinkCreated(msgspec.Struct, frozen=True, kw_only=True):
    """A link that signs in once: the server's address, then `path`. The code stays in the browser.

    Browsers do not send what follows `#`; the page sends it in the body of a request.
    """

    path: str
    expires_at: str


class CodeRequest(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A new code; with `worker` it is only valid for that name. `takeover` needs a name."""

    expires: float | str = "1h"
    worker: str | None = None
    takeover: bool = False


class CodeCreated(msgspec.Struct, frozen=True, kw_only=True):
    """A single-use code for one worker to enrol with."""

    code: str
    expires_at: str


class AuditEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A call that changed something or was refused; `calls` counts identical calls."""

    id: int
    at: str
    calls: int
    actor: str | None  # None: anonymous
    role: str | None
    token: int | None
    address: str
    action: str
    resource: str
    namespace: str | None
    status: int
    error: str | None  # None: success
    request: str
    what: str | None = None  # `action` in words, if this server knows it
    about: str | None = None  # the object in words, such as "token 12 `ci`, role viewer"


class AuditList(msgspec.Struct, frozen=True):
    """A page of the audit log; `next` is where the next one begins, None at the end."""

    entries: list[AuditEntry]
    next: int | None = None
