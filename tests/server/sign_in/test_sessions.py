"""Signing in with a token or a link: who gets a session, and when it ends."""

import httpx
import pytest

from tests.support.running import run
from tests.support.running_server import RunningServer, error_of, job, running_server
from windlass.domain.access.http_limits import HttpLimits
from windlass.domain.access.rights import Role
from windlass.domain.config import Config
from windlass.engine import access as access_module
from windlass.server.http.authentication import session_cookie

LINK = "/sign-in#code="


async def opened(
    server: RunningServer, **secret: str | None
) -> tuple[httpx.AsyncClient, httpx.Response]:
    """A browser that has tried to sign in, and the answer."""
    browser = await server.http(None)
    reply = await browser.post(
        "/auth/session", json=secret, headers={"Origin": server.address}
    )  # fmt: skip
    return browser, reply


def session_name(server: RunningServer) -> str:
    """The name of the session's cookie: browsers do not tell the ports of a machine apart."""
    return f"windlass_session_{httpx.URL(server.address).port}"


async def status(browser: httpx.AsyncClient) -> int:
    return (await browser.get("/api/v1/whoami")).status_code


async def link(server: RunningServer, by: httpx.AsyncClient) -> str:
    """The code of a new sign-in link."""
    made = await by.post("/auth/links")
    assert made.status_code == 201, made.text
    path = str(made.json()["path"])
    return path.removeprefix(LINK)


def test_a_token_opens_a_session_with_its_rights_in_a_cookie_that_scripts_cannot_read() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            token = await server.token(Role.SUBMITTER, "team")
            browser, reply = await opened(server, token=token)
            assert reply.status_code == 201
            cookie = reply.headers["set-cookie"]
            assert cookie.startswith(f"{session_name(server)}=wl_s_")
            assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
            assert token not in reply.text + cookie
            assert reply.headers["cache-control"] == "no-store"
            who = (await browser.get("/api/v1/whoami")).json()
            assert (who["role"], who["namespaces"]) == ("submitter", ["team"])
            assert "submit-jobs" in who["actions"]
            assert "manage-queues" not in who["actions"]

    run(scenario())


def test_two_servers_of_one_machine_keep_their_sessions_apart() -> None:
    async def scenario() -> None:
        async with running_server() as one, running_server() as other:
            browser, _ = await opened(one, token=await one.token(Role.VIEWER))
            reply = await browser.post(
                f"{other.address}/auth/session",
                json={"token": await other.token(Role.OPERATOR)},
                headers={"Origin": other.address},
            )
            assert reply.status_code == 201
            for server, role in ((one, "viewer"), (other, "operator")):
                who = await browser.get(f"{server.address}/api/v1/whoami")
                assert (who.status_code, who.json()["role"]) == (200, role)
            gone = await browser.post(
                f"{other.address}/auth/logout", headers={"Origin": other.address}
            )
            assert gone.status_code == 204
            assert await status(browser) == 200

    run(scenario())


@pytest.mark.parametrize(
    ("host", "origin", "is_secure", "name"),
    [
        (b"localhost:8080", "", False, "windlass_session_8080"),
        (b"[::1]:8080", "", False, "windlass_session_8080"),
        (b"win.example", "", True, "__Host-windlass_session"),
        (b"10.0.0.7:7420", "https://win.example", True, "__Host-windlass_session"),
        (b"win.example:nonsense", "", False, "windlass_session"),
        (b"", "", False, "windlass_session"),
    ],
)
def test_the_cookie_is_named_after_the_port_that_browsers_see(
    host: bytes, origin: str, is_secure: bool, name: str
) -> None:
    assert session_cookie({b"host": host}, origin, is_secure) == name


def test_who_has_no_valid_token_of_a_person_gets_no_session() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            access, now = server.services.access, await server.services.engine.now()
            revoked = await access.create_token("revoked", Role.ADMIN)
            await access.revoke(revoked.token.id)
            late = await access.create_token("late", Role.ADMIN, expires_at=now - 1)
            pending = await server.pending("w0")
            worker = await server.worker()
            refused = [revoked.secret, late.secret, "wl_unknown", "", pending.token, worker.token]
            for secret in [*refused, worker.secret]:
                browser, reply = await opened(server, token=secret)
                assert reply.status_code in (401, 403), secret
                assert "set-cookie" not in reply.headers
                assert await status(browser) == 401

    run(scenario())


@pytest.mark.parametrize("body", [{}, {"token": "a", "code": "b"}])
def test_a_sign_in_names_a_token_or_a_code(body: dict[str, str | None]) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            _, reply = await opened(server, **body)
            assert reply.status_code == 422

    run(scenario())


def test_a_session_ends_when_its_token_is_revoked_or_replaced() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            access = server.services.access
            for name in ("revoked", "rotated"):
                made = await access.create_token(name, Role.OPERATOR)
                browser, _ = await opened(server, token=made.secret)
                assert await status(browser) == 200
                if name == "revoked":
                    await access.revoke(made.token.id)
                else:
                    await access.rotate(made.token.id, 0, None)
                assert await status(browser) == 401, name
            again = await access.create_token("revoked", Role.OPERATOR)  # the name is free
            assert again.token.name == "revoked"

    run(scenario())


def test_a_session_ends_when_its_token_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_module, "TRUSTED_MS", 0)

    async def scenario() -> None:
        async with running_server() as server:
            access, engine = server.services.access, server.services.engine
            made = await access.create_token("short", Role.VIEWER)
            browser, _ = await opened(server, token=made.secret)
            assert await status(browser) == 200
            now = await engine.now()
            await engine.store.transact(lambda tx: tx.access.expire(made.token.id, now))
            assert await status(browser) == 401

    run(scenario())


def test_a_link_signs_in_once_with_the_rights_of_who_made_it() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            viewer = await server.role(Role.VIEWER, "team")
            code = await link(server, viewer)
            first, reply = await opened(server, code=code)
            assert (reply.status_code, reply.json()["role"]) == (201, "viewer")
            assert (await first.get("/api/v1/whoami")).json()["namespaces"] == ["team"]
            _, again = await opened(server, code=code)
            assert again.status_code == 401
            assert "used already" in error_of(again)["message"]

    run(scenario())


def test_a_link_of_somebody_else_replaces_no_session_unless_the_person_wants_it() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            victim, _ = await opened(server, token=await server.token(Role.OPERATOR))
            own = {"Origin": server.address}
            code = await link(server, await server.role(Role.VIEWER, "theirs"))
            reply = await victim.post("/auth/session", json={"code": code}, headers=own)
            assert (reply.status_code, error_of(reply)["code"]) == (409, "other_session")
            assert (await victim.get("/api/v1/whoami")).json()["role"] == "operator"
            wanted = {"code": code, "replace": True}
            reply = await victim.post("/auth/session", json=wanted, headers=own)
            assert (reply.status_code, reply.json()["role"]) == (201, "viewer")
            path = (await victim.post("/auth/links", headers=own)).json()["path"]
            same = {"code": path.removeprefix(LINK)}
            reply = await victim.post("/auth/session", json=same, headers=own)
            assert reply.status_code == 201

    run(scenario())


def test_a_link_is_worthless_when_it_is_old_or_its_token_was_revoked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        async with running_server() as server:
            made = await server.services.access.create_token("ci", Role.ADMIN)
            by = await server.http(made.secret)
            codes = [await link(server, by)]
            await server.services.access.revoke(made.token.id)
            monkeypatch.setattr(access_module, "LINK_MS", 0)
            codes.append(await link(server, server.admin))
            for code in codes:
                _, reply = await opened(server, code=code)
                assert reply.status_code == 401

    run(scenario())


def test_codes_of_links_and_of_enrolments_are_not_taken_for_each_other() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            enrolment, _ = await server.services.access.create_code(60_000)
            _, reply = await opened(server, code=enrolment)
            assert reply.status_code == 401
            code = await link(server, server.admin)
            refused = await server.admin.post(
                "/api/v1/workers/enrol", json={"name": "w1", "code": code}
            )
            assert refused.status_code in (401, 403, 409, 422), refused.text
            _, still_good = await opened(server, code=code)
            assert still_good.status_code == 201
            _, unused = await opened(server, code=enrolment)
            assert unused.status_code == 401

    run(scenario())


def test_another_page_cannot_use_the_session_and_a_token_in_a_cookie_does_not_count() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            token = await server.token(Role.ADMIN)
            browser, _ = await opened(server, token=token)
            body = {"jobs": [job()]}
            for origin in (None, "https://evil.example", "null", "http://127.0.0.1:1"):
                headers = {} if origin is None else {"Origin": origin}
                reply = await browser.post("/api/v1/jobs", json=body, headers=headers)
                assert reply.status_code == 403, origin
            own = {"Origin": server.address}
            assert (await browser.post("/api/v1/jobs", json=body, headers=own)).status_code == 201
            raw = await server.http(None)
            raw.cookies.set(session_name(server), token)
            assert await status(raw) == 401

    run(scenario())


def test_signing_out_ends_the_session_and_is_in_the_audit_log() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            browser, _ = await opened(server, token=await server.token(Role.VIEWER))
            secret = browser.cookies[session_name(server)]
            await opened(server, token="wl_wrong")
            reply = await browser.post("/auth/logout", headers={"Origin": server.address})
            assert (reply.status_code, session_name(server) in browser.cookies) == (204, False)
            assert await status(await server.http(secret)) == 401
            await server.services.audit.run_once(0)
            entries = (await server.admin.get("/api/v1/audit")).json()["entries"]
            found = {(row["action"], row["status"]) for row in entries}
            assert {
                ("POST /auth/session", 201),
                ("POST /auth/session", 401),
                ("POST /auth/logout", 204),
            } <= found
            assert secret not in str(entries)

    run(scenario())


def test_an_address_tries_only_so_many_tokens_in_a_minute() -> None:
    async def scenario() -> None:
        config = Config(http=HttpLimits(sign_ins_per_minute=3))
        async with running_server(config=config) as server:
            tried = [(await opened(server, token=f"wl_{n}"))[1].status_code for n in range(8)]
            assert 429 in tried
            assert tried.count(401) <= 6  # a minute may have ended between them
            assert await status(server.admin) == 200

    run(scenario())
