"""Signed tokens of machines: what counts, and everything that must not."""

import asyncio
import base64
import hmac
import json
from collections.abc import Sequence
from typing import Any

import httpx
import pytest

from tests.server.sign_in.conftest import Setting
from tests.support.identity_provider.server import new_key
from tests.support.running import run
from tests.support.running_server import NO_TLS, error_of
from windlass.server.http import call


async def _ask(setting: Setting, tokens: Sequence[str]) -> list[httpx.Response]:
    async with setting.server() as server:
        return [await _whoami(server.address, token) for token in tokens]


def _check_refusals(setting: Setting, refused: Sequence[tuple[str, str]]) -> None:
    """Checks that a server refuses these tokens, each with its reason, and a good one not."""
    *replies, good = run(_ask(setting, [*(token for token, _ in refused), setting.token()]))
    for (_, reason), reply in zip(refused, replies, strict=True):
        assert reply.status_code == 401, (reason, reply.text)
        assert reason in error_of(reply)["message"]
    assert good.status_code == 200


def test_a_token_of_a_known_issuer_has_the_rights_of_its_claims(setting: Setting) -> None:
    async def scenario() -> None:
        async with setting.server() as server:
            machine = await server.http(setting.token(ref="refs/tags/v1"))
            who = (await machine.get("/api/v1/whoami")).json()
            actions = who.pop("actions")
            assert "submit-jobs" in actions
            assert "change-all-jobs" not in actions
            assert who.pop("at") > 0
            name = f"jwt:{setting.provider.issuer}:repo:org/repo"
            assert who == {
                "name": name, "role": "submitter", "namespaces": ["ci"]
            }  # fmt: skip
            job = {"task": "shell", "args": {"argv": ["true"]}}
            made = await machine.post("/api/v1/jobs", json={"jobs": [{**job, "namespace": "ci"}]})
            assert made.status_code == 201, made.text
            shown = await server.show(made.json()["ids"][0])
            assert shown["submitted_by"] == name
            other = {**job, "namespace": "other"}
            refused = await machine.post("/api/v1/jobs", json={"jobs": [other]})
            assert refused.status_code == 403
            assert (await machine.post("/api/v1/codes", json={})).status_code == 403

    run(scenario())


HOSTILE: list[tuple[dict[str, Any], str]] = [
    ({"aud": "another"}, "audience"),
    ({"aud": None}, "audience"),
    ({"aud": ["windlass-ci", "another"]}, "several audiences"),
    ({"iss": "https://evil.example"}, "another issuer"),
    ({"iss": None}, "another issuer"),
    ({"exp": 1_700_000_000, "iat": 1_699_999_000}, "expired"),
    ({"exp": None}, "exp"),
    ({"exp": "never"}, "exp"),
    ({"iat": None}, "iat"),
    ({"nbf": 2**33}, "not valid yet"),
    ({"iat": 2**33, "exp": 2**33 + 60}, "not valid yet"),
    ({"exp": 2**33}, "longer than"),
    ({"sub": None}, "nobody"),
    ({"events": {"logout": {}}}, "nobody"),
    ({"repository": "org/other"}, "no rights"),
    ({"repository": None}, "no rights"),
    ({"repository": ["org/repo"]}, "no rights"),
    ({"ref": "refs/heads/main2"}, "no rights"),
]


def test_claims_that_do_not_fit_are_refused_with_the_reason(setting: Setting) -> None:
    _check_refusals(setting, [(setting.token(**claims), reason) for claims, reason in HOSTILE])


def _encoded(*parts: dict[str, Any] | bytes) -> str:
    raw = [part if isinstance(part, bytes) else json.dumps(part).encode() for part in parts]
    return b".".join(base64.urlsafe_b64encode(part).rstrip(b"=") for part in raw).decode()


def test_a_token_without_signature_is_refused(setting: Setting) -> None:
    forged = [_encoded({"alg": name}, setting.claims()) for name in ("none", "None", "NONE", "")]
    stripped = setting.token().rpartition(".")[0] + "."
    refused = [(f"{token}.", "signed in a way") for token in forged]
    _check_refusals(setting, [*refused, (stripped, "not signed")])


def test_a_public_key_is_no_shared_secret(setting: Setting) -> None:
    key = setting.provider.key
    said = _encoded({"alg": "HS256", "kid": "first", "typ": "JWT"}, setting.claims())
    forged = [
        f"{said}.{_encoded(hmac.digest(secret, said.encode(), 'sha256'))}"
        for secret in (key.as_pem(private=False), json.dumps(key.as_dict(private=False)).encode())
    ]
    _check_refusals(setting, [(token, "signed in a way") for token in forged])


def test_a_key_in_the_token_itself_does_not_count(setting: Setting) -> None:
    own = new_key("first")
    public = own.as_dict(private=False)
    headers: list[dict[str, Any]] = [{}, {"jwk": public}, {"kid": "mine", "jwk": public}]
    forged = [setting.token(own, header) for header in headers]
    _check_refusals(setting, [(token, "not signed") for token in forged])


def test_tokens_of_other_kinds_are_refused(setting: Setting) -> None:
    kinds = [setting.token(header={"typ": kind}) for kind in ("logout+jwt", "secevent+jwt")]
    junk = ("eyJ.eyJ.x", "ey..", "eyJhbGciOiJSUzI1NiJ9.e30.AAAA")
    _check_refusals(
        setting,
        [
            *((token, "signed in a way") for token in kinds),
            (setting.token(padding="x" * 20_000), "too long"),
            *((token, "the token") for token in junk),
        ],
    )


def test_new_keys_are_found_and_old_ones_forgotten(setting: Setting, no_retry_pause: None) -> None:
    old = setting.provider.key

    async def scenario() -> None:
        async with setting.server() as server:
            before, unknown = setting.token(old), setting.token(new_key("x"), {"kid": "x"})
            assert (await _whoami(server.address, before)).status_code == 200
            assert (await _whoami(server.address, unknown)).status_code == 401
            setting.provider.stop()
            setting.provider.key = new_key("second")
            setting.provider.start()
            after = setting.token(header={"kid": "second"})
            assert (await _whoami(server.address, after)).status_code == 200
            late = setting.token(old, sub="late")
            assert (await _whoami(server.address, late)).status_code == 401

    try:
        run(scenario())
    finally:
        setting.provider.stop()
        setting.provider.key = old


def test_keys_are_not_fetched_for_every_unknown_one(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with setting.server() as server:
            assert (await _whoami(server.address, setting.token())).status_code == 200
            fetcher, fetched = server.services.callers.fetcher, []
            fetch = fetcher.get

            async def count(url: str) -> bytes:
                fetched.append(url)
                return await fetch(url)

            monkeypatch.setattr(fetcher, "get", count)
            other = new_key("x")
            for number in range(5):
                forged = setting.token(other, {"kid": f"x{number}"})
                assert (await _whoami(server.address, forged)).status_code == 401
            assert (await _whoami(server.address, setting.token(sub="b"))).status_code == 200
            assert fetched == []

    run(scenario())


def test_a_provider_that_is_away_is_reported_as_such(setting: Setting) -> None:
    token = setting.token()
    setting.provider.stop()
    (reply,) = run(_ask(setting, [token]))
    assert reply.status_code == 503
    assert "identity provider" in error_of(reply)["message"]
    assert int(reply.headers["Retry-After"]) >= 1


def test_a_stream_ends_when_its_signed_token_expires(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(call, "RECHECK_SECONDS", 0.02)

    async def scenario() -> None:
        async with setting.server() as server:
            now = server.services.clock.now_ms() / 1000
            client = await server.http(setting.token(exp=now + 1.0))
            with pytest.raises(httpx.RemoteProtocolError):  # noqa: PT012
                async with asyncio.timeout(60), client.stream("GET", "/api/v1/events") as reply:
                    assert reply.status_code == 200
                    async for _ in reply.aiter_bytes():
                        pass
            assert (await client.get("/api/v1/whoami")).status_code == 401

    run(scenario())


async def _whoami(address: str, token: str) -> httpx.Response:
    async with httpx.AsyncClient(verify=NO_TLS, base_url=address) as client:
        return await client.get("/api/v1/whoami", headers={"Authorization": f"Bearer {token}"})
