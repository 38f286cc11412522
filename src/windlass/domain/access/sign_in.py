"""Sign-in: the identity provider for people, the issuers for machines, and their tokens.

The settings are tables in the configuration file: `[access.oidc]` and `[[access.machines]]`. The
signature of a token is verified elsewhere, before anyone trusts its claims.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec import Struct

from windlass.domain.access.rights import MACHINE, PERSON, Identity, Role, parse_role
from windlass.domain.values.addresses import is_loopback
from windlass.domain.values.conversion import convert
from windlass.domain.values.errors import InvalidInput, WindlassError
from windlass.domain.values.names import check_name, is_name

OPENID: Final = "openid"
ANY: Final = "*"  # at the end of a value: matches any ending


class GroupRights(Struct, frozen=True, forbid_unknown_fields=True):
    """What the members of a group may do; empty `namespaces` means all."""

    group: str
    role: str
    namespaces: tuple[str, ...] = ()


class Oidc(Struct, frozen=True, forbid_unknown_fields=True):
    """The provider where people sign in, and what groups may do; the first match applies."""

    issuer: str
    client_id: str
    client_secret_file: str = ""  # empty: a public client
    cli_client_id: str = ""  # of `windlass login`; empty: `client_id`
    public_url: str = ""  # where browsers reach the server; empty: only `windlass login`
    scopes: tuple[str, ...] = (OPENID, "profile", "email")
    name_claim: str = "sub"
    groups_claim: str = "groups"
    map: tuple[GroupRights, ...] = ()

    @property
    def audiences(self) -> tuple[str, ...]:
        """Returns the clients whose tokens are accepted."""
        return (self.client_id, self.login_client)

    @property
    def login_client(self) -> str:
        """Returns the client of `windlass login`."""
        return self.cli_client_id or self.client_id

    @property
    def is_secure(self) -> bool:
        """Returns whether browsers reach the server over TLS."""
        return self.public_url.startswith("https:")

    @property
    def origin(self) -> str:
        """Returns what browsers send as `Origin`."""
        parts = urlsplit(self.public_url)
        return f"{parts.scheme}://{parts.netloc}".lower()

    @property
    def callback_url(self) -> str:
        """Returns where the provider sends browsers back to."""
        return self.public_url.rstrip("/") + "/auth/callback"


class Machine(Struct, frozen=True, forbid_unknown_fields=True):
    """What a machine may do whose token has this issuer, audience and claims."""

    issuer: str
    audience: str
    # each claim has one of these values; a trailing `*` matches any ending
    claims: dict[str, str | tuple[str, ...]]
    role: str
    namespaces: tuple[str, ...] = ()
    name_claim: str = "sub"


class SignIn(Struct, frozen=True, forbid_unknown_fields=True):
    """All settings of sign-in; without any, only our own tokens are accepted."""

    oidc: Oidc | None = None
    machines: tuple[Machine, ...] = ()

    @property
    def is_on(self) -> bool:
        """Returns whether tokens of another issuer are accepted."""
        return self.oidc is not None or bool(self.machines)


def read_sign_in(tables: Mapping[str, object]) -> SignIn:
    """Returns the settings from tables below `access`; raises `InvalidInput`."""
    settings = convert(dict(tables), SignIn, "access")
    if settings.oidc is not None:
        _check_oidc(settings.oidc)
    for number, machine in enumerate(settings.machines):
        _check_machine(machine, f"access.machines[{number}]")
    return settings


def _check_oidc(oidc: Oidc) -> None:
    _check_url("access.oidc.issuer", oidc.issuer)
    if oidc.public_url:
        _check_url("access.oidc.public_url", oidc.public_url)
        if urlsplit(oidc.public_url).path not in ("", "/"):
            raise InvalidInput("access.oidc.public_url", "without a path", oidc.public_url)
    for field in ("client_id", "name_claim", "groups_claim"):
        check_name(f"access.oidc.{field}", getattr(oidc, field))
    if OPENID not in oidc.scopes:
        raise InvalidInput("access.oidc.scopes", f"{OPENID} and others", ", ".join(oidc.scopes))
    for number, rights in enumerate(oidc.map):
        field = f"access.oidc.map[{number}]"
        check_name(f"{field}.group", rights.group)
        _check_rights(rights.role, rights.namespaces, field)


def _check_machine(machine: Machine, field: str) -> None:
    _check_url(f"{field}.issuer", machine.issuer)
    check_name(f"{field}.audience", machine.audience)
    check_name(f"{field}.name_claim", machine.name_claim)
    if not machine.claims:
        expected = "at least one: everybody can get a token from a public issuer"
        raise InvalidInput(f"{field}.claims", expected, "none")
    for name, wanted in machine.claims.items():
        for value in (wanted,) if isinstance(wanted, str) else wanted:
            if not value.removesuffix(ANY) or ANY in value.removesuffix(ANY):
                expected = f"a value, or the beginning of one followed by {ANY}"
                raise InvalidInput(f"{field}.claims.{name}", expected, value)
    _check_rights(machine.role, machine.namespaces, field)


def _check_rights(role: str, namespaces: Sequence[str], field: str) -> None:
    if parse_role(role) is Role.WORKER:
        raise InvalidInput(f"{field}.role", "a role for people; workers enrol instead", role)
    for namespace in namespaces:
        check_name(f"{field}.namespaces", namespace)


def _check_url(field: str, url: str) -> None:
    """Raises `InvalidInput` unless it is https, or http on this machine."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        host, parts = "", urlsplit("")
    secure = parts.scheme == "https" or (parts.scheme == "http" and is_loopback(host))
    if not host or not secure or parts.query or parts.fragment or parts.username is not None:
        raise InvalidInput(field, "an https address", url)


SKEW_S: Final = 60  # how far another clock may be ahead of ours
MAX_S: Final = 86_400  # between a token's issue and its expiry

Claims = Mapping[str, Any]


class TokenRefused(WindlassError):
    """A signed token is not accepted; the message says why."""

    code = "unauthorized"


def check_claims(claims: Claims, issuer: str, audiences: Sequence[str], now_s: float) -> float:
    """Returns when the token expires; raises `TokenRefused` if it is not valid now."""
    if claims.get("iss") != issuer:
        raise TokenRefused("the token comes from another issuer")
    named = claims.get("aud")
    meant = named if isinstance(named, list) else [named]
    if not any(isinstance(one, str) and one in audiences for one in meant):
        raise TokenRefused("the token is meant for another audience")
    if len(meant) > 1 and claims.get("azp") not in audiences:
        raise TokenRefused("the token is for several audiences and was issued to another client")
    if "events" in claims or not isinstance(claims.get("sub"), str) or not claims["sub"]:
        raise TokenRefused("the token identifies nobody")
    expires, issued = _time(claims, "exp"), _time(claims, "iat")
    if expires <= now_s:
        raise TokenRefused("the token has expired")
    if max(issued, _time(claims, "nbf", issued)) > now_s + SKEW_S:
        raise TokenRefused("the token is not valid yet")
    if expires - issued > MAX_S:
        raise TokenRefused(f"the token is valid for longer than {MAX_S // 3600} hours")
    return expires


def check_nonce(claims: Claims, nonce: str) -> None:
    """Raises `TokenRefused` unless the token carries the nonce of this request."""
    if not nonce or claims.get("nonce") != nonce:
        raise TokenRefused("the token does not answer this sign-in (nonce)")


def person(claims: Claims, oidc: Oidc) -> Identity:
    """Returns who signed in, with the rights of the first group in the map."""
    name = _name(claims, oidc.name_claim, PERSON)
    if oidc.name_claim == "email" and claims.get("email_verified") is False:
        raise TokenRefused("the e-mail address is not verified")
    listed = claims.get(oidc.groups_claim)
    groups = listed if isinstance(listed, list) else [listed]
    for rights in oidc.map:
        if rights.group in groups:
            return Identity(0, name, Role(rights.role), rights.namespaces)
    raise TokenRefused(f"{name} is in no group that may use this server")


def machine(claims: Claims, settings: Machine) -> Identity | None:
    """Returns the machine if its claims meet these settings, else None."""
    for name, wanted in settings.claims.items():
        value = claims.get(name)
        accepted = (wanted,) if isinstance(wanted, str) else wanted
        if not isinstance(value, str) or not any(_fits(value, one) for one in accepted):
            return None
    # Another issuer may give the same name to somebody else.
    prefix = f"{MACHINE}{settings.issuer.removeprefix('https://')}:"
    name = _name(claims, settings.name_claim, prefix)
    return Identity(0, name, Role(settings.role), settings.namespaces)


def _fits(value: str, wanted: str) -> bool:
    if wanted.endswith(ANY):
        return value.startswith(wanted.removesuffix(ANY))
    return value == wanted


def _name(claims: Claims, claim: str, prefix: str) -> str:
    value = claims.get(claim)
    name = f"{prefix}{value}"
    if not isinstance(value, str) or not value or not is_name(name):
        raise TokenRefused(f"the token has no usable claim {claim}")
    return name


def _time(claims: Claims, claim: str, default: float | None = None) -> float:
    value = claims.get(claim, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 2**40:
        raise TokenRefused(f"the token has no usable claim {claim}")
    return value
