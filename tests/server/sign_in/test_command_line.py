"""`windlass login`: device code, the stored login, and its renewal."""

import re
from pathlib import Path

import httpx
import pytest

from tests.server.sign_in.browser import approve_device
from tests.server.sign_in.conftest import Setting
from tests.support.running import run
from tests.support.running_server import NO_TLS, running_server
from windlass.cli.commands.fleet.access import _sign_in as sign_in
from windlass.cli.options.connection import Connection
from windlass.client import login
from windlass.client.client import AsyncClient
from windlass.client.login import Login, Logins
from windlass.client.settings import announce, find_server
from windlass.client.transport import ServerError, Transport
from windlass.domain.values.errors import Conflict, InvalidInput
from windlass.messages.access import WhoAmI


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user without logins, tokens and servers."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    for name in ("WINDLASS_TOKEN", "WINDLASS_SERVER", "WINDLASS_DATA"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path / "windlass"


def approve_as(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """While the command waits for the person, that person signs in."""

    async def sign_in_meanwhile(seconds: float) -> None:
        assert seconds == 5  # the standard's, as the provider asks for nothing else
        (url,) = re.findall(r"or open (\S+)", capsys.readouterr().err)
        async with httpx.AsyncClient(verify=NO_TLS, timeout=30) as browser:
            await approve_device(browser, url, name)

    monkeypatch.setattr(login, "pass_time", sign_in_meanwhile)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


async def whoami(address: str) -> WhoAmI:
    client = AsyncClient(address)
    try:
        return await client.transport.call("GET", "/api/v1/whoami", WhoAmI)
    finally:
        await client.transport.close()


def test_a_login_is_kept_private_used_and_renewed(
    setting: Setting,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    approve_as("alice", monkeypatch, capsys)

    async def scenario() -> None:
        async with setting.server() as server:
            address = server.address
            who = await sign_in(Connection(), address)
            assert (who.name, who.role, who.namespaces) == ("oidc:alice", "operator", ("farm",))
            assert [mode_of(home), mode_of(home / "logins.json")] == [0o700, 0o600]
            assert await whoami(address) == who

            first = Logins().find(address)
            assert first is not None
            assert first.refresh_token
            expired = Login(first.issuer, first.client_id, "ey.old.token", first.refresh_token)
            Logins().keep(address, expired)
            assert await whoami(address) == who
            second = Logins().find(address)
            assert second is not None
            assert second.token != "ey.old.token"

            setting.provider.set_groups({"alice": []})
            renewed = await Logins().renew(address, second.token)
            assert renewed is not None
            with pytest.raises(ServerError, match="in no group"):
                await whoami(address)

            assert Logins().remove(address) is not None
            with pytest.raises(ServerError, match="needs a valid token"):
                await whoami(address)

    run(scenario())


def test_who_has_no_rights_is_not_kept(
    setting: Setting,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    approve_as("eve", monkeypatch, capsys)

    async def scenario() -> None:
        async with setting.server() as server:
            with pytest.raises(ServerError, match="in no group"):
                await sign_in(Connection(), server.address)
            assert Logins().find(server.address) is None

    run(scenario())


def test_a_login_that_cannot_be_renewed_ends(setting: Setting, home: Path) -> None:
    async def scenario() -> None:
        async with setting.server() as server:
            issuer, address = setting.provider.issuer, server.address
            for refresh in ("", "of nobody"):
                Logins().keep(address, Login(issuer, "windlass-cli", "ey.old.token", refresh))
                with pytest.raises(ServerError, match="the token"):
                    await whoami(address)
            with pytest.raises(Conflict, match="refused"):
                await login.refresh(issuer, "windlass-cli", "of nobody")

    run(scenario())


def test_a_login_is_for_one_server_only(home: Path) -> None:
    logins = Logins()
    logins.keep("https://one.example/", Login("https://i.example", "c", "t1"))
    assert logins.find("https://one.example,https://two.example") is not None
    assert logins.find("https://two.example") is None
    (home / "logins.json").chmod(0o644)
    with pytest.raises(InvalidInput, match="only you can read"):
        logins.find("https://one.example")


def test_a_refused_request_is_repeated_once() -> None:
    """Not for ever, if the provider keeps giving tokens that the server refuses."""

    async def scenario() -> None:
        asked: list[str] = []

        async def renew(token: str) -> str | None:
            asked.append(token)
            return f"{token}2"

        async with running_server() as server:
            transport = Transport(server.address, "no", renew=renew)
            with pytest.raises(ServerError):
                await transport.call("GET", "/api/v1/whoami", WhoAmI)
            await transport.close()
        assert asked == ["no"]

    run(scenario())


def test_the_admin_token_of_this_machine_is_sent_to_no_other(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    data = tmp_path / "windlass"
    data.mkdir(exist_ok=True)
    (data / "admin-token").write_text("wl_secret\n")
    announce(data, "http://127.0.0.1:7420")
    for address in ("http://127.0.0.1:7420", "http://localhost:7420,http://[::1]:7420"):
        assert find_server(address).token == "wl_secret"
    for address in ("https://other.example", "http://127.0.0.1:1", "http://[::1]:7420,https://a.b"):
        assert find_server(address).token is None
        assert find_server(address, data=data).token == "wl_secret"
