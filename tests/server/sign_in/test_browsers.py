"""The sign-in of browsers: authorization code with PKCE, sessions, and forged callbacks."""

from urllib.parse import parse_qs, urlsplit

import httpx

from tests.server.sign_in.browser import sign_in
from tests.server.sign_in.conftest import Setting
from tests.support.running import run
from tests.support.running_server import NO_TLS, RunningServer, error_of
from windlass.domain.access.rights import Role
from windlass.server.sign_in import code_flow


def new_browser() -> httpx.AsyncClient:
    return httpx.AsyncClient(verify=NO_TLS, timeout=30)


def session_name(server: RunningServer) -> str:
    """The name of the session's cookie: browsers do not tell the ports of a machine apart."""
    return f"windlass_session_{httpx.URL(server.address).port}"


async def signed_in(server: RunningServer, browser: httpx.AsyncClient, name: str) -> httpx.Response:
    """Signs in all the way; returns the answer of our callback."""
    back = await sign_in(browser, server.address, name, to="/jobs?x=1")
    return await browser.get(back.headers["Location"])


def test_a_person_signs_in_and_has_the_rights_of_the_first_group_in_the_map(
    setting: Setting,
) -> None:
    async def scenario() -> None:
        async with setting.server() as server, new_browser() as browser:
            reply = await signed_in(server, browser, "alice")
            assert (reply.status_code, reply.headers["Location"]) == (302, "/jobs?x=1")
            (cookie,) = [
                c
                for c in reply.headers.get_list("set-cookie")
                if c.startswith(f"{session_name(server)}=")
            ]
            assert "HttpOnly" in cookie
            assert "SameSite=Strict" in cookie
            assert "Path=/;" in cookie
            assert "Secure" not in cookie  # this server has no TLS
            who = (await browser.get(f"{server.address}/api/v1/whoami")).json()
            actions = set(who.pop("actions"))
            assert who.pop("at") > 0
            assert who == {"name": "oidc:alice", "role": "operator", "namespaces": ["farm"]}
            assert {"change-all-jobs", "read-jobs"} <= actions
            assert not actions & {"manage-tokens", "manage-queues", "sync", "sign-in"}
            listed = (await server.admin.get("/api/v1/tokens")).json()["tokens"]
            (session,) = [row for row in listed if row["kind"] == "session"]
            assert session["name"] == "oidc:alice"
            assert session["expires_at"] is not None
            assert browser.cookies[session_name(server)] not in str(listed)

    run(scenario())


def test_a_change_with_a_session_needs_the_origin_of_our_own_page(setting: Setting) -> None:
    async def scenario() -> None:
        async with setting.server() as server, new_browser() as browser:
            await signed_in(server, browser, "alice")
            url = f"{server.address}/api/v1/jobs"
            body = {"jobs": [{"task": "shell", "args": {"argv": ["true"]}, "namespace": "farm"}]}
            for origin in (None, "null", "https://evil.example", f"{server.address}.evil.example"):
                headers = {} if origin is None else {"Origin": origin}
                reply = await browser.post(url, json=body, headers=headers)
                assert reply.status_code == 403, origin
            made = await browser.post(url, json=body, headers={"Origin": server.address})
            assert made.status_code == 201, made.text
            assert (await server.show(made.json()["ids"][0]))["submitted_by"] == "oidc:alice"

    run(scenario())


def test_logging_out_ends_the_session_on_the_server(setting: Setting) -> None:
    async def scenario() -> None:
        async with setting.server() as server, new_browser() as browser:
            await signed_in(server, browser, "alice")
            secret = browser.cookies[session_name(server)]
            url = f"{server.address}/auth/logout"
            assert (await browser.post(url)).status_code == 403
            reply = await browser.post(url, headers={"Origin": server.address})
            assert reply.status_code == 204
            assert session_name(server) not in browser.cookies
            stolen = await server.http(secret)
            assert (await stolen.get("/api/v1/whoami")).status_code == 401

    run(scenario())


def test_who_is_in_no_mapped_group_does_not_get_in(setting: Setting) -> None:
    async def scenario() -> None:
        async with setting.server() as server:
            async with new_browser() as browser:
                reply = await signed_in(server, browser, "eve")
                assert reply.status_code == 401
                assert "in no group" in error_of(reply)["message"]
                assert session_name(server) not in browser.cookies
            setting.provider.set_groups({"alice": ["staff"], "bob": []})  # alice left farm-ops
            async with new_browser() as browser:
                await signed_in(server, browser, "alice")
                who = (await browser.get(f"{server.address}/api/v1/whoami")).json()
                assert (who["role"], who["namespaces"]) == ("viewer", [])
            async with new_browser() as browser:
                assert (await signed_in(server, browser, "bob")).status_code == 401

    run(scenario())


def test_a_callback_counts_once_and_only_in_the_browser_that_began(setting: Setting) -> None:
    async def scenario() -> None:
        async with setting.server() as server, new_browser() as browser:
            back = await sign_in(browser, server.address, "alice")
            url = back.headers["Location"]
            cookie = browser.cookies["windlass_sign_in"]
            asked = parse_qs(urlsplit(url).query)
            async with new_browser() as other:
                reply = await other.get(url)  # an attacker sends the victim their own callback
                assert reply.status_code == 401
                assert "began in another browser" in error_of(reply)["message"]
            for change in ({"state": "x" * 43}, {"state": ""}, {"iss": "https://evil.example"}):
                query = {name: values[0] for name, values in asked.items()} | change
                jar = {"windlass_sign_in": cookie}
                async with httpx.AsyncClient(verify=NO_TLS, cookies=jar) as again:
                    forged = await again.get(f"{server.address}/auth/callback", params=query)
                    assert forged.status_code == 401, change
            # The last one used the state up, also for the browser that it belongs to.
            assert (await browser.get(url)).status_code == 401
            assert (await signed_in(server, browser, "alice")).status_code == 302

    run(scenario())


def test_a_token_with_another_nonce_does_not_count(setting: Setting) -> None:
    async def scenario() -> None:
        async with setting.server() as server, new_browser() as browser:
            back = await sign_in(browser, server.address, "alice")
            state, _, verifier, to = browser.cookies["windlass_sign_in"].split(".", 3)
            jar = {"windlass_sign_in": f"{state}.{'n' * 43}.{verifier}.{to}"}
            async with httpx.AsyncClient(verify=NO_TLS, cookies=jar) as swapped:
                reply = await swapped.get(back.headers["Location"])
            assert reply.status_code == 401
            assert "nonce" in error_of(reply)["message"]

    run(scenario())


def test_a_code_without_its_verifier_is_worthless(setting: Setting) -> None:
    async def scenario() -> None:
        async with setting.server() as server, new_browser() as browser:
            back = await sign_in(browser, server.address, "alice")
            state, nonce, _, to = browser.cookies["windlass_sign_in"].split(".", 3)
            jar = {"windlass_sign_in": f"{state}.{nonce}.{'v' * 43}.{to}"}
            async with httpx.AsyncClient(verify=NO_TLS, cookies=jar) as thief:
                reply = await thief.get(back.headers["Location"])
            assert reply.status_code == 401
            assert "refused the sign-in: invalid_grant" in error_of(reply)["message"]

    run(scenario())


def test_nobody_is_sent_to_another_site(setting: Setting) -> None:
    async def scenario() -> None:
        async with setting.server() as server, new_browser() as browser:
            for to in ("https://evil.example", "//evil.example", "/\\evil.example", "x", "/a\nb"):
                reply = await browser.get(f"{server.address}/auth/login", params={"to": to})
                assert reply.status_code == 422, to
            back = await sign_in(browser, server.address, "alice")
            state, nonce, verifier, _ = browser.cookies["windlass_sign_in"].split(".", 3)
            jar = {"windlass_sign_in": f"{state}.{nonce}.{verifier}.//evil.example"}
            async with httpx.AsyncClient(verify=NO_TLS, cookies=jar) as other:
                reply = await other.get(back.headers["Location"])
            assert (reply.status_code, reply.headers["Location"]) == (302, "/")

    run(scenario())


def test_without_settings_nobody_signs_in(setting: Setting) -> None:
    async def scenario() -> None:
        async with setting.server(public_url="") as server, new_browser() as browser:
            for path in ("/auth/login", "/auth/callback?code=x&state=y"):
                assert (await browser.get(server.address + path)).status_code in (401, 404), path
            browser.cookies.set(session_name(server), await server.token(Role.ADMIN))
            assert (await browser.get(f"{server.address}/api/v1/whoami")).status_code == 401

    run(scenario())


def test_the_challenge_is_that_of_the_standard() -> None:
    verifier = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"  # of RFC 7636, appendix B
    assert code_flow.challenge_of(verifier) == "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
