"""Signatures: which keys and algorithms count. Nobody is asked here."""

import sys
import warnings
from typing import Any, cast

import pytest
from joserfc import jwt
from joserfc.errors import SecurityWarning
from joserfc.jwk import ECKey, Key, OctKey, OKPKey, RSAKey

from tests.support.running import run
from windlass.clock import RealClock
from windlass.domain.access.sign_in import TokenRefused, read_sign_in
from windlass.domain.values.errors import InvalidInput
from windlass.server.sign_in.callers import SignedCallers
from windlass.server.sign_in.provider import Provider
from windlass.server.sign_in.signatures import verify

RSA = RSAKey.generate_key(2048)
GOOD: list[tuple[str, Key]] = [
    ("PS256", RSA),
    ("RS512", RSA),
    ("ES256", ECKey.generate_key("P-256")),
    ("ES384", ECKey.generate_key("P-384")),
    ("EdDSA", OKPKey.generate_key("Ed25519")),
]


class Published:
    """A provider that publishes these keys."""

    def __init__(self, *keys: dict[str, Any]) -> None:
        self._keys = keys

    async def keys(self, kid: str | None) -> list[dict[str, Any]]:
        return [key for key in self._keys if kid is None or key.get("kid") == kid]


def check(token: str, *keys: dict[str, Any]) -> dict[str, Any]:
    return dict(run(verify(token, cast(Provider, Published(*keys)))))


def encode(algorithm: str, key: Key) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SecurityWarning)
        return jwt.encode({"alg": algorithm}, {"sub": "x"}, key, algorithms=[algorithm])


@pytest.mark.parametrize(("algorithm", "key"), GOOD)
def test_public_key_signatures_count(algorithm: str, key: Key) -> None:
    public = cast(dict[str, Any], key.as_dict(private=False))
    token = encode(algorithm, key)
    other = cast(dict[str, Any], RSAKey.generate_key(2048).as_dict(private=False))
    assert check(token, other, public) == {"sub": "x"}
    for refused in ({**public, "use": "enc"}, {**public, "alg": "RS384"}, other):
        with pytest.raises(TokenRefused, match="not signed by"):
            check(token, refused)


def test_weak_keys_and_shared_secrets_that_a_provider_publishes_do_not_count() -> None:
    with pytest.warns(SecurityWarning):
        weak = RSAKey.generate_key(1024)
    token = encode("RS256", weak)
    with pytest.raises(TokenRefused, match="not signed by"):
        check(token, cast(dict[str, Any], weak.as_dict(private=False)))
    shared = OctKey.generate_key(256)
    token = encode("HS256", shared)
    with pytest.raises(TokenRefused, match="signed in a way"):
        check(token, cast(dict[str, Any], shared.as_dict(private=True)))


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = read_sign_in({"oidc": {"issuer": "https://i.example", "client_id": "c"}})
    monkeypatch.setitem(sys.modules, "joserfc", None)
    with pytest.raises(InvalidInput, match=r"pip install 'windlass\[oidc\]'"):
        SignedCallers(settings, RealClock())
    SignedCallers(read_sign_in({}), RealClock())  # nothing is needed where nothing is configured
