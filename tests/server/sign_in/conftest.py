"""One identity provider for all tests of this folder, and servers that trust it."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from joserfc import jwt
from joserfc.jwk import OctKey, RSAKey

from tests.support.identity_provider.server import (
    CLI,
    WEB,
    IdentityProvider,
    ProviderMissingError,
    install,
)
from tests.support.loopback import free_port
from tests.support.running_server import RunningServer, running_server
from windlass.clock import RealClock
from windlass.domain.access.sign_in import SignIn, read_sign_in
from windlass.domain.config import Config

GROUPS = {"alice": ["staff", "farm-ops"], "bob": ["staff"], "eve": ["visitors"]}
AUDIENCE = "windlass-ci"


class Setting(NamedTuple):
    """The provider, and the port that its web client sends browsers back to."""

    provider: IdentityProvider
    port: int
    secret_file: Path

    def sign_in(self, **oidc: Any) -> SignIn:
        """Returns settings that trust the provider, for people and machines."""
        return read_sign_in({
            "oidc": {
                "issuer": self.provider.issuer,
                "client_id": WEB,
                "client_secret_file": str(self.secret_file),
                "cli_client_id": CLI,
                "public_url": f"http://127.0.0.1:{self.port}",
                "map": [
                    {"group": "farm-ops", "role": "operator", "namespaces": ["farm"]},
                    {"group": "staff", "role": "viewer"},
                ],
                **oidc,
            },
            "machines": [
                {
                    "issuer": self.provider.issuer,
                    "audience": AUDIENCE,
                    "claims": {"repository": "org/repo", "ref": ["refs/heads/main", "refs/tags/*"]},
                    "role": "submitter",
                    "namespaces": ["ci"],
                }
            ],
        })  # fmt: skip

    @asynccontextmanager
    async def server(
        self, store: str = "memory:", config: Config | None = None, **oidc: Any
    ) -> AsyncIterator[RunningServer]:
        """Runs a server that trusts the provider."""
        async with running_server(
            store, config, sign_in=self.sign_in(**oidc), port=self.port
        ) as server:
            yield server

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Returns what a good token of a machine says; None leaves a claim out."""
        now = RealClock().now_ms() // 1000
        claims = {
            "iss": self.provider.issuer, "aud": AUDIENCE, "sub": "repo:org/repo", "iat": now,
            "exp": now + 300, "repository": "org/repo", "ref": "refs/heads/main", **changes,
        }  # fmt: skip
        return {name: value for name, value in claims.items() if value is not None}

    def token(
        self, key: RSAKey | OctKey | None = None, header: dict[str, Any] | None = None,
        **changes: Any,
    ) -> str:  # fmt: skip
        """Returns a signed token; by default the provider's own key signs it."""
        signer = key or self.provider.key
        head = {"alg": "RS256", "kid": "first", **(header or {})}
        return jwt.encode(head, self.claims(**changes), signer, algorithms=[head["alg"]])


@pytest.fixture(scope="session")
def _provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Setting]:
    try:
        install()
    except ProviderMissingError as missing:
        pytest.skip(str(missing))
    folder = tmp_path_factory.mktemp("provider")
    port = free_port()
    provider = IdentityProvider(folder, GROUPS, f"http://127.0.0.1:{port}/auth/callback")
    secret = folder / "secret"
    secret.touch(mode=0o600)
    secret.write_text(provider.client_secret)
    provider.start()
    yield Setting(provider, port, secret)
    provider.stop()


@pytest.fixture
def setting(_provider: Setting) -> Iterator[Setting]:
    """The provider as it was at first; a test may stop it or change the groups."""
    yield _provider
    _provider.provider.set_groups(GROUPS)
    if not _provider.provider.is_running:
        _provider.provider.start()


@pytest.fixture
def no_retry_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a server look for new keys whenever it likes."""
    monkeypatch.setattr("windlass.server.sign_in.provider.RETRY_MS", 0)
