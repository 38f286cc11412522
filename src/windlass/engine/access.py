"""Tokens and enrolment codes: made once, kept as digests, revocable.

The secrets are 256 bits from the operating system; only their SHA-256 is stored, which for secrets
of that length needs no salt. When tokens were used is written once a minute for all of them, so
that no request needs to.
"""

import asyncio
import hashlib
import hmac
from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

from windlass.domain.access.rights import SIGNED_IN, Identity, Role
from windlass.domain.access.tokens import (
    SESSION,
    SESSION_PREFIX,
    TOKEN_PREFIX,
    Code,
    Token,
    refuse_reserved,
)
from windlass.domain.matching.workers import WorkerStatus
from windlass.domain.rows.events import EventKind
from windlass.domain.values.errors import Conflict, InvalidInput, existing
from windlass.domain.values.names import check_name
from windlass.engine.engine import Engine
from windlass.engine.transaction.unit_of_work import Work
from windlass.ports.clock import Secrets
from windlass.store.sql.transaction import ReadTx

CODE_PREFIX = "enrol_"
LINK_PREFIX = "link_"
LINK_MS = 600_000  # how long the code of a sign-in link is valid
NAME_TAKEN = "name_taken"
OTHER_SESSION = "other_session"
NAMESPACE_LIMIT = 100
REMOVED = "removed"
REPLACED = "replaced"  # by a newer incarnation
SHUT_OUT = (WorkerStatus.PENDING_APPROVAL, WorkerStatus.DISABLED)
TRUSTED_MS = 5_000  # how long a looked-up token is trusted
TIME_TRUSTED_S = 5.0  # how long the offset to the store's clock is assumed to stay the same
MINUTE_MS: Final = 60_000


class CreatedToken(NamedTuple):
    """A new token; the secret exists nowhere else."""

    secret: str
    token: Token


class SignedTokens(Protocol):
    """Verifies tokens that other issuers have signed."""

    def accepts(self, secret: str) -> bool:
        """Returns whether it is a signed token, so that we need not look it up."""

    async def identify(self, secret: str, most_ms: int | None) -> Identity | None:
        """Returns the bearer if the token is valid, else None."""


class _CachedToken(NamedTuple):
    identity: Identity
    digest: str
    expires_at: int
    checked_at: int


class _StoreTime:
    """Estimates the store's time without asking a distant store each time."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._known: int | None = None
        self._known_at = 0.0  # on the loop's clock

    async def now(self) -> int:
        """Returns the last known time plus the time elapsed since."""
        if self._engine.store.inline:
            return await self._engine.now()
        loop = asyncio.get_running_loop()
        if self._known is None or loop.time() - self._known_at >= TIME_TRUSTED_S:
            self._known, self._known_at = await self._engine.now(), loop.time()
        return self._known + int((loop.time() - self._known_at) * 1000)


class Access:
    """Makes, checks and revokes secrets for one engine.

    Look-ups are cached for a few seconds, so other servers may accept a revoked token, or one of a
    disabled worker, at most that much longer.
    """

    def __init__(
        self, engine: Engine, secrets: Secrets, signed: SignedTokens | None = None
    ) -> None:
        self._engine = engine
        self._secrets = secrets
        self._signed = signed
        self._seen: dict[str, _CachedToken] = {}
        self._uses: dict[int, int] = {}  # token → its last use since the last write
        self._time = _StoreTime(engine)
        self._ttl_ms = min(engine.config.heartbeat_interval_ms, TRUSTED_MS)

    async def identify(self, secret: str, most_ms: int | None = None) -> Identity | None:
        """Returns the identity behind this token, if it is valid.

        A look-up is trusted for a few seconds, or for `most_ms` if that is less.
        """
        if self._signed is not None and self._signed.accepts(secret):
            return await self._signed.identify(secret, most_ms)
        digest = digest_of(secret)
        now = await self._time.now()
        seen = self._seen.get(digest)
        ttl = self._ttl_ms if most_ms is None else min(self._ttl_ms, most_ms)
        if seen is None or now - seen.checked_at >= ttl:
            seen = await self._look_up(digest, now)
        if seen is None or not hmac.compare_digest(seen.digest, digest):
            return None
        if seen.expires_at and seen.expires_at <= now:
            return None
        if not seen.identity.worker:
            self._uses[seen.identity.token] = now
        return seen.identity

    async def note_uses(self) -> None:
        """Writes the last uses of tokens since the previous call."""
        uses, self._uses = self._uses, {}
        if uses:
            await self._engine.store.transact(lambda tx: tx.access.touch(uses))

    async def create_token(
        self, name: str, role: Role, namespaces: Sequence[str] = (), expires_at: int = 0,
        actor: str | None = None, reach: Sequence[str] = (),
    ) -> CreatedToken:  # fmt: skip
        """Makes a token and stores its digest; the log records who asked for it.

        `reach` are the caller's namespaces; empty means all. Within these, two live tokens of
        people that share a namespace never have the same name.
        """
        check_name("name", name)
        if name.startswith(SIGNED_IN):
            raise InvalidInput(
                "name", f"a name that does not start with {' or '.join(SIGNED_IN)}", name
            )
        refuse_reserved(name)
        if len(namespaces) > NAMESPACE_LIMIT:
            raise InvalidInput("namespaces", f"at most {NAMESPACE_LIMIT}", len(namespaces))
        for namespace in namespaces:
            check_name("namespaces", namespace)
        secret = self.make_token()

        async def insert(work: Work) -> Token:
            await _expect_free(work, name, namespaces, reach)
            row = _row(name, secret, role, namespaces, work.now, expires_at)
            made = row._replace(id=await work.tx.access.insert(row))
            message = f"Token {made.id} ({name}, {role}) was made"
            data = {"token": made.id, "namespaces": list(namespaces)}
            work.say(EventKind.ACCESS, message, actor=actor, data=data)
            return made

        return CreatedToken(secret, await self._engine.run(insert))

    async def open_session(self, who: Identity, ttl_ms: int) -> str:
        """Returns the secret of a new session for somebody who has signed in.

        A session opened with a token has the rights of the token, and ends with it.
        """
        secret = SESSION_PREFIX + self._secrets.secret()

        async def insert(work: Work) -> None:
            row = _row(who.name, secret, who.role, who.namespaces, work.now, work.now + ttl_ms)
            session = await work.tx.access.insert(row._replace(kind=SESSION, parent=who.token))
            message = f"{who.name} signed in ({who.role})"
            work.say(EventKind.ACCESS, message, actor=who.name, data={"token": session})

        await self._engine.run(insert)
        return secret

    async def create_link(self, who: Identity) -> tuple[str, int]:
        """Returns the code of a link that opens one session of the caller's token, and when it
        expires.
        """
        secret = LINK_PREFIX + self._secrets.secret()

        async def insert(work: Work) -> int:
            expires_at = work.now + LINK_MS
            row = Code(digest_of(secret), work.now, expires_at, 0, token=who.token)
            await work.tx.access.add_code(row)
            work.say(EventKind.ACCESS, f"A sign-in link of {who.name} was made", actor=who.name)
            return expires_at

        return secret, await self._engine.run(insert)

    async def use_link(self, secret: str, instead_of: Identity | None = None) -> Identity | None:
        """Returns whose session a link opens, once; None if its code or token is not valid.

        If the link belongs to somebody else than `instead_of`, it raises `Conflict` and stays
        valid.
        """

        async def use(work: Work) -> Identity | None:
            code = await work.tx.access.use_link(digest_of(secret), work.now)
            token = None if code is None else await work.tx.access.by_id(code.token)
            if token is None or 0 < token.expires_at <= work.now:
                return None
            if not await _lives(work.tx, token, work.now):
                return None
            found = _identity(token, await _shut_out(work.tx, token))
            now = instead_of or found
            if (found.name, found.namespaces) != (now.name, now.namespaces):
                message = (
                    f"you are signed in as {_in_words(now)}, this link belongs to "
                    f"{_in_words(found)}"
                )
                raise Conflict(OTHER_SESSION, message)
            return found

        return await self._engine.run(use)

    async def rotate(
        self, token: int, grace_ms: int, ttl_ms: int | None, actor: str | None = None
    ) -> CreatedToken:
        """Makes a token like this one, which ends after `grace_ms`; 0: at once.

        Without `ttl_ms` the new one is valid for as long as the old one was.
        """
        secret = self.make_token()

        async def step(work: Work) -> Token:
            await work.tx.access.lock()
            rows = {row.id: row for row in await work.tx.access.all()}
            old = existing("token", token, rows.get(token))
            if old.worker or old.kind == SESSION:
                raise Conflict(
                    "not_rotated", "a person's token; workers and sessions get theirs automatically"
                )
            if old.revoked_at or 0 < old.expires_at <= work.now:
                raise Conflict("not_valid", f"token {token} is not valid any more; create one")
            lifetime = max(0, old.expires_at - old.created_at)
            ttl = work.config.access.token_ttl_ms(lifetime or None) if ttl_ms is None else ttl_ms
            until = work.now + ttl if ttl else 0
            row = _row(old.name, secret, Role(old.role), old.namespaces, work.now, until)
            made = row._replace(id=await work.tx.access.insert(row))
            if grace_ms:
                await work.tx.access.expire(token, work.now + grace_ms)
            else:
                await work.tx.access.revoke(token, work.now)
            message = f"Token {token} ({old.name}) was replaced by token {made.id}"
            work.say(EventKind.ACCESS, message, actor=actor, data={"token": made.id})
            return made

        made = await self._engine.run(step)
        self.forget()
        return CreatedToken(secret, made)

    def make_token(self) -> str:
        """Returns a new secret, which is valid once its digest is stored."""
        return TOKEN_PREFIX + self._secrets.secret()

    async def revoke(self, token: int, actor: str | None = None) -> bool:
        """Revokes a token with its sessions; for a worker's token, also the worker's others.

        On this server it stops working at once.
        """

        async def step(work: Work) -> bool:
            revoked = await work.tx.access.revoke(token, work.now)
            for other in await _that_end_with(work, token) if revoked else ():
                await work.tx.access.revoke(other, work.now)
            if revoked:
                message = f"Token {token} was revoked"
                work.say(EventKind.ACCESS, message, actor=actor, data={"token": token})
            return revoked

        revoked = await self._engine.run(step)
        self.forget()
        return revoked

    def forget(self) -> None:
        """Empties the cache, because a worker's status has changed."""
        self._seen.clear()

    async def tokens(self) -> list[Token]:
        """Returns all tokens, without their secrets."""
        return await self._engine.store.read(lambda tx: tx.access.all())

    async def create_code(
        self, ttl_ms: int, actor: str | None = None, worker: str = "", takeover: bool = False
    ) -> tuple[str, int]:
        """Creates a code for one enrolment; returns it and when it expires.

        With a name it is valid for that worker only. With `takeover` it ends a live one.
        """
        if takeover and not worker:
            raise InvalidInput("worker", "the name of the worker to take over", "nothing")
        secret = CODE_PREFIX + self._secrets.secret()

        async def insert(work: Work) -> int:
            expires_at = work.now + ttl_ms
            row = Code(digest_of(secret), work.now, expires_at, 0, int(takeover), worker)
            await work.tx.access.add_code(row)
            kind = "code to take over" if takeover else "code for"
            whose = f"worker {worker}" if worker else "a worker"
            work.say(EventKind.ACCESS, f"A {kind} {whose} was made", actor=actor)
            return expires_at

        return secret, await self._engine.run(insert)

    async def _look_up(self, digest: str, now: int) -> _CachedToken | None:
        async def read(tx: ReadTx) -> tuple[Token | None, str]:
            token = await tx.access.by_digest(digest)
            if token is None or not await _lives(tx, token, now):
                return None, ""
            return token, await _shut_out(tx, token)

        token, shut_out = await self._engine.store.read(read)
        if token is None or shut_out == REPLACED:
            self._seen.pop(digest, None)
            return None
        seen = _CachedToken(_identity(token, shut_out), token.digest, token.expires_at, now)
        if len(self._seen) >= 100_000:
            self._seen.clear()
        self._seen[digest] = seen
        return seen


def _row(
    name: str, secret: str, role: Role, namespaces: Sequence[str], now: int, expires_at: int
) -> Token:
    return Token(0, name, digest_of(secret), str(role), tuple(namespaces), 0, now, expires_at, 0)


async def _expect_free(
    work: Work, name: str, namespaces: Sequence[str], reach: Sequence[str]
) -> None:
    """Raises `Conflict` if a live token has this name and reaches one of these namespaces.

    Jobs belong to a namespace and to the name of a token in it. Tokens that the caller cannot list
    are ignored: a refusal would reveal their names. The caller may change their jobs anyway.
    """
    await work.tx.access.lock()
    for row in await work.tx.access.all():
        lives = not row.revoked_at and not 0 < row.expires_at <= work.now
        meets = not row.namespaces or not namespaces or {*row.namespaces} & {*namespaces}
        listed = not reach or (row.namespaces and {*row.namespaces} <= {*reach})
        if row.name == name and lives and meets and listed and not row.worker:
            message = (
                f"the name {name} belongs to a token that reaches the same namespaces: "
                "choose another name, or revoke that token first"
            )
            raise Conflict(NAME_TAKEN, message)


async def _that_end_with(work: Work, token: int) -> list[int]:
    """Returns the tokens that end with this one: its sessions, and others of the same worker."""
    rows = await work.tx.access.all()
    worker = next((row.worker for row in rows if row.id == token), 0)
    return [
        row.id
        for row in rows
        if row.parent == token or (worker and row.worker == worker and row.id != token)
    ]


async def _lives(tx: ReadTx, token: Token, now: int) -> bool:
    """Returns whether neither a token nor, for a session, its parent was revoked.

    The caller checks when the token itself expires: it has the latest time.
    """
    if token.revoked_at:
        return False
    if not token.parent:
        return True
    parent = await tx.access.by_id(token.parent)
    if parent is None or 0 < parent.expires_at <= now:
        return False
    return await _lives(tx, parent, now)


def _in_words(who: Identity) -> str:
    """Returns an identity in words, with namespaces: tokens of different ones may share a name."""
    return f"{who.name} ({', '.join(who.namespaces)})" if who.namespaces else who.name


def _identity(token: Token, shut_out: str) -> Identity:
    return Identity(
        token.id, token.name, Role(token.role), token.namespaces, token.worker,
        token.incarnation, shut_out,
    )  # fmt: skip


async def _shut_out(tx: ReadTx, token: Token) -> str:
    """Returns why a worker's token is useless, or ""."""
    if not token.worker:
        return ""
    row = (await tx.workers.read([token.worker])).get(token.worker)
    if row is None:
        return REMOVED
    if token.incarnation and token.incarnation != row.incarnation:
        return REPLACED
    return WorkerStatus(row.status).name.lower() if row.status in SHUT_OUT else ""


def digest_of(secret: str) -> str:
    """Returns the digest under which a secret is stored."""
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()


class TokenUses:
    """Writes the last use of tokens, so that no request needs to."""

    name = "token_uses"
    interval_ms = MINUTE_MS

    def __init__(self, access: Access) -> None:
        self._access = access

    async def run_once(self, now: int) -> None:
        """Runs one round."""
        del now
        await self._access.note_uses()
