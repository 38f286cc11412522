"""Checks the signatures of tokens (JWS). Everything about JOSE is here.

Only signatures with public keys count: never `none`, and never a shared secret (HS256 and the
like), which anybody could make from a public key.
"""

import base64
import binascii
import warnings
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from windlass.domain.access.sign_in import TokenRefused
from windlass.domain.values.errors import InvalidInput
from windlass.server.sign_in.provider import Provider

ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA",
    "Ed25519",
)  # fmt: skip
KEY_TYPES: Final = ("RSA", "EC", "OKP")
TYPES: Final = ("", "jwt", "at+jwt", "application/at+jwt")  # not those of logout and others
TOKEN_LIMIT: Final = 16 * 1024  # characters
MIN_RSA: Final = 2_048  # bits


class Unverified(NamedTuple):
    """What a token says about itself, of which nothing is known to be true."""

    header: dict[str, Any]
    claims: dict[str, Any]


def require_library() -> None:
    """Raises `InvalidInput` with the command that installs what is missing."""
    try:
        import joserfc  # noqa: F401
    except ImportError:
        expected = "installed with `pip install 'windlass[oidc]'`"
        raise InvalidInput("access.oidc", expected, "nothing") from None


def looks_signed(token: str) -> bool:
    """Returns whether this may be a signed token of another issuer."""
    return token.startswith("ey") and token.count(".") == 2


def peek(token: str) -> Unverified:
    """Returns header and claims without checking the signature; raises `TokenRefused`."""
    if len(token) > TOKEN_LIMIT:
        raise TokenRefused("the token is too long")
    head, body, _ = token.split(".")
    return Unverified(_part(head), _part(body))


async def verify(token: str, provider: Provider) -> Mapping[str, Any]:
    """Returns the claims of a token that the provider has signed; raises `TokenRefused`."""
    from joserfc import jwk, jws
    from joserfc.errors import JoseError, SecurityWarning

    header = peek(token).header
    algorithm, kid = header.get("alg"), header.get("kid")
    kind = str(header.get("typ", "")).lower()
    if algorithm not in ALGORITHMS or kind not in TYPES or "crit" in header:
        raise TokenRefused("the token is not signed in a way that counts")
    if kid is not None and not isinstance(kid, str):
        raise TokenRefused("the token is not valid")
    for described in await provider.keys(kid):
        if not _may_verify(described, algorithm):
            continue
        try:
            with warnings.catch_warnings():
                # Providers still say EdDSA for Ed25519, which the library warns about.
                warnings.simplefilter("ignore", SecurityWarning)
                key = jwk.import_key(described)
                found = jws.deserialize_compact(token, key, algorithms=[algorithm])
            return _claims(found.payload)
        except (JoseError, ValueError, TypeError):
            continue  # another key may fit
    raise TokenRefused("the token is not signed by its issuer")


def _may_verify(key: Mapping[str, Any], algorithm: str) -> bool:
    """Returns whether a published key is meant for signatures of this kind."""
    if key.get("kty") not in KEY_TYPES or key.get("use", "sig") != "sig":
        return False
    if key["kty"] == "RSA" and len(str(key.get("n", ""))) * 6 < MIN_RSA:
        return False
    return bool(key.get("alg", algorithm) == algorithm)


def _part(text: str) -> dict[str, Any]:
    try:
        return _claims(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    except (binascii.Error, ValueError):
        raise TokenRefused("the token is not valid") from None


def _claims(content: bytes) -> dict[str, Any]:
    try:
        return msgspec.json.decode(content, type=dict[str, Any])
    except (msgspec.MsgspecError, RecursionError):
        raise TokenRefused("the token is not valid") from None
