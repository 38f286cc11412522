"""What the claims of a signed token must say, and whom they make of its bearer.

The signature is checked elsewhere; nothing here counts without it.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from windlass.domain.access.roles import MACHINE, PERSON, Identity, Role
from windlass.domain.access.sign_in import ANY, Machine, Oidc
from windlass.domain.values.errors import WindlassError
from windlass.domain.values.names import is_name

SKEW_S: Final = 60  # how far another clock may be ahead of ours
MAX_S: Final = 86_400  # between a token's issue and its expiry

Claims = Mapping[str, Any]


class TokenRefused(WindlassError):
    """A signed token does not count here; the message says why."""

    code = "unauthorized"


def check_claims(claims: Claims, issuer: str, audiences: Sequence[str], now_s: float) -> float:
    """Returns when the token expires; raises `TokenRefused` if it does not count now."""
    if claims.get("iss") != issuer:
        raise TokenRefused("the token is of another issuer")
    named = claims.get("aud")
    meant = named if isinstance(named, list) else [named]
    if not any(isinstance(one, str) and one in audiences for one in meant):
        raise TokenRefused("the token is for another audience")
    if len(meant) > 1 and claims.get("azp") not in audiences:
        raise TokenRefused("the token is for several audiences and was given to another one")
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
    """Raises `TokenRefused` unless the token answers the request that had this nonce."""
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
