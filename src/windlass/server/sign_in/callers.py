"""Identifies callers that present a signed token of another issuer."""

from typing import Final, NamedTuple

from windlass.domain.access.rights import Identity
from windlass.domain.access.sign_in import (
    Machine,
    Oidc,
    SignIn,
    TokenRefused,
    check_claims,
    machine,
    person,
)
from windlass.engine.access import digest_of
from windlass.ports.clock import Clock
from windlass.server.sign_in.provider import Fetcher, Provider
from windlass.server.sign_in.signatures import looks_signed, peek, require_library, verify

TRUSTED_MS: Final = 30_000  # how long a signature that was checked counts
REMEMBERED: Final = 10_000  # tokens


class _Known(NamedTuple):
    identity: Identity
    expires_s: float
    checked_at: int


class SignedCallers:
    """Implements `SignedTokens` for one server."""

    def __init__(self, settings: SignIn, clock: Clock) -> None:
        if settings.is_on:
            require_library()
        self._settings = settings
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._refused: dict[str, str] = {}  # why, by digest
        self.fetcher = Fetcher()
        issuers = {machine.issuer for machine in settings.machines}
        if settings.oidc is not None:
            issuers.add(settings.oidc.issuer)
        self._providers = {issuer: Provider(issuer, self.fetcher, clock) for issuer in issuers}

    @property
    def oidc(self) -> Oidc | None:
        """Returns where people sign in."""
        return self._settings.oidc

    def provider(self, issuer: str) -> Provider:
        """Returns a configured issuer."""
        return self._providers[issuer]

    @property
    def public_origin(self) -> str:
        """Returns where browsers reach this server, if its settings say so."""
        return self.oidc.origin if self.oidc is not None and self.oidc.public_url else ""

    def accepts(self, secret: str) -> bool:
        """Returns whether this is a signed token, and such tokens may count here."""
        return bool(self._providers) and looks_signed(secret)

    def why_refused(self, secret: str) -> str:
        """Returns why this token was refused lately; empty if that is not known."""
        return self._refused.get(digest_of(secret), "") if self.accepts(secret) else ""

    async def identify(self, secret: str, most_ms: int | None) -> Identity | None:
        """Returns who presents this token; what was checked counts for at most `most_ms`."""
        try:
            return await self._signed(secret, most_ms)
        except TokenRefused as error:
            if len(self._refused) >= REMEMBERED:
                self._refused.clear()
            self._refused[digest_of(secret)] = error.message
            return None

    async def _signed(self, token: str, most_ms: int | None) -> Identity:
        now = self._clock.now_ms()
        digest = digest_of(token)
        known = self._known.get(digest)
        ttl = TRUSTED_MS if most_ms is None else min(TRUSTED_MS, most_ms)
        if known is None or now - known.checked_at >= ttl:
            self._known.pop(digest, None)
            known = await self._check(token, now)
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[digest] = known
        if known.expires_s * 1000 <= now:
            raise TokenRefused("the token has expired")
        return known.identity

    async def _check(self, token: str, now: int) -> _Known:
        said = peek(token).claims
        provider = self._providers.get(str(said.get("iss")))
        if provider is None:
            raise TokenRefused("the token comes from another issuer")
        # What it says of itself is enough to refuse it, before the provider is asked.
        rules = [rule for rule in self._rules() if rule.issuer == provider.issuer]
        check_claims(said, provider.issuer, _audiences(*rules), now / 1000)
        claims = await verify(token, provider)
        refused = TokenRefused("the token's claims give it no rights here")
        for rule in rules:
            try:
                expires = check_claims(claims, rule.issuer, _audiences(rule), now / 1000)
            except TokenRefused:
                continue  # it is for another rule
            try:
                found = person(claims, rule) if isinstance(rule, Oidc) else machine(claims, rule)
                if found is not None:
                    return _Known(found, expires, now)
            except TokenRefused as error:
                refused = error
        raise refused

    def _rules(self) -> list[Oidc | Machine]:
        """Returns all settings, those of people first."""
        return [*([] if self.oidc is None else [self.oidc]), *self._settings.machines]


def _audiences(*rules: Oidc | Machine) -> tuple[str, ...]:
    return tuple(
        audience
        for rule in rules
        for audience in (rule.audiences if isinstance(rule, Oidc) else (rule.audience,))
    )
