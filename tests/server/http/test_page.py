"""The files of the dashboard: who gets them, in which form, and under which policy."""

import asyncio
import gzip
import os
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from tests.support.running import run
from tests.support.running_server import running_server
from windlass import dashboard
from windlass.dashboard.page import Files, Page
from windlass.server.app import create_app

INDEX = """<!doctype html><html><head><meta name="windlass-base" content="/" />
<script type="module" src="./assets/app-1a2b.js"></script></head><body></body></html>"""
SCRIPT = b"console.log(1)\n" * 100
BROWSER = {"Accept": "text/html,application/xhtml+xml", "Accept-Encoding": "gzip, br"}


@pytest.fixture
def built(tmp_path: Path) -> Path:
    """A folder as the build leaves it, and a file beside it that is nobody's business."""
    folder = tmp_path / "static"
    (folder / "assets").mkdir(parents=True)
    (folder / "index.html").write_text(INDEX)
    (folder / "theme.js").write_text("1")
    (folder / "assets" / "app-1a2b.js").write_bytes(SCRIPT)
    (folder / "assets" / "app-1a2b.js.gz").write_bytes(gzip.compress(SCRIPT))
    (folder / "assets" / "app-1a2b.js.br").write_bytes(b"as if by brotli")
    (tmp_path / "secret").write_text("secret")
    return folder


def get(page: Any, path: str, method: str = "GET", **headers: str) -> httpx.Response:
    """One request, without a server; the answer as it was sent, not decompressed."""

    async def ask() -> httpx.Response:
        sent: list[Any] = []
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "root_path": headers.pop("root_path", ""),
            "headers": [
                (name.replace("_", "-").lower().encode(), text.encode())
                for name, text in headers.items()
            ],
        }

        async def receive() -> Any:
            return {"type": "http.request"}

        async def send(message: Any) -> None:
            sent.append(message)

        await page(scope, receive, send)
        body = b"".join(message.get("body", b"") for message in sent[1:])
        fields = [(n, v) for n, v in sent[0]["headers"] if n != b"content-encoding"]
        found = [v for n, v in sent[0]["headers"] if n == b"content-encoding"]
        fields += [(b"x-encoding", value) for value in found]
        return httpx.Response(sent[0]["status"], headers=fields, content=body)

    return asyncio.run(ask())


def test_hashed_files_are_sent_compressed_and_kept_for_ever(built: Path) -> None:
    page = Page(Files(built))
    path = "/assets/app-1a2b.js"
    best = get(page, path, accept_encoding="gzip, deflate, br")
    assert (best.headers["x-encoding"], best.content) == ("br", b"as if by brotli")
    assert "immutable" in best.headers["cache-control"]
    zipped = get(page, path, accept_encoding="gzip, br;q=0")
    assert gzip.decompress(zipped.content) == SCRIPT
    plain = get(page, path)
    assert (plain.content, "x-encoding" in plain.headers) == (SCRIPT, False)
    assert plain.headers["content-type"].startswith("text/javascript")
    assert get(page, path, method="HEAD").content == b""
    assert get(page, "/", accept="text/html").headers["cache-control"] == "no-cache"


def test_a_known_file_is_not_sent_again(built: Path) -> None:
    page = Page(Files(built))
    etag = get(page, "/theme.js").headers["etag"]
    assert get(page, "/theme.js", if_none_match=etag).status_code == 304
    assert get(page, "/theme.js", if_none_match='"other"').status_code == 200


@pytest.mark.parametrize(
    "path",
    ["/../secret", "/assets/../../secret", "//secret", "/%2e%2e/secret", "/assets", "/index.html/"],
)
def test_a_path_leads_to_no_file_beside_the_page(path: str, built: Path) -> None:
    page = Page(Files(built))
    reply = get(page, path)
    assert (reply.status_code, b"secret" in reply.content) == (404, False)
    assert get(page, path, accept="text/html").text.startswith("<!doctype html>")


def test_the_page_knows_the_prefix_under_which_it_is_mounted(built: Path) -> None:
    page = Page(Files(built))
    shown = get(page, '/ops"x/jobs/7', root_path='/ops"x', accept="text/html").text
    assert 'content="/ops&quot;x/"' in shown
    assert 'src="/ops&quot;x/assets/app-1a2b.js"' in shown
    assert get(page, "/ops/theme.js", root_path="/ops").status_code == 200


def test_every_answer_has_the_policy_of_the_page(built: Path) -> None:
    page = Page(Files(built))
    for reply in (get(page, "/", accept="text/html"), get(page, "/x"), get(page, "/", "POST")):
        policy = reply.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self';")
        assert "frame-ancestors 'none'; base-uri 'none'; form-action 'self'" in policy
        assert "unsafe" not in policy
        assert reply.headers["x-content-type-options"] == "nosniff"
        assert reply.headers["referrer-policy"] == "no-referrer"


def test_a_new_build_is_noticed(built: Path) -> None:
    page = Page(Files(built))
    assert "app-1a2b" in get(page, "/", accept="text/html").text
    (built / "index.html").write_text(INDEX.replace("1a2b", "3c4d"))
    os.utime(built / "index.html", (1, 1))
    assert "app-3c4d" in get(page, "/", accept="text/html").text


def test_without_a_build_the_page_says_how_to_make_one(tmp_path: Path) -> None:
    reply = get(Page(Files(tmp_path / "nothing")), "/", accept="text/html")
    assert (reply.status_code, "make dashboard" in reply.text) == (200, True)


def test_a_server_gives_browsers_the_page_and_programs_the_api() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            anybody = await server.http(None)
            for path in ("/", "/jobs/7", "/sign-in"):
                reply = await anybody.get(path, headers=BROWSER)
                assert reply.status_code == 200, path
                assert reply.headers["content-type"] == "text/html; charset=utf-8"
            for path in ("/api/v1/nothing", "/auth/nothing", "/nothing", "/api/v1/jobs"):
                reply = await anybody.get(path)
                assert reply.status_code in (401, 404), path
                assert reply.headers["content-type"] == "application/json"
            assert (await anybody.get("/api/v1/x", headers=BROWSER)).status_code == 404
            assert (await anybody.get("/metrics", headers=BROWSER)).status_code == 401
            assert (await anybody.post("/jobs", headers=BROWSER)).status_code in (403, 404)

    run(scenario())


def test_a_server_without_the_dashboard_serves_the_api_only() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            routes = create_app(server.services)
            transport = httpx.ASGITransport(routes)
            async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as all_:
                assert (await all_.get("/", headers=BROWSER)).status_code == 404
                assert (await all_.get("/healthz")).status_code == 200

    run(scenario())


def test_it_can_be_mounted_in_an_application_of_a_user() -> None:
    async def scenario() -> None:
        mounted = Starlette(routes=[Mount("/ops", app=dashboard.app())])
        transport = httpx.ASGITransport(mounted)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as user:
            reply = await user.get("/ops/jobs", headers=BROWSER)
            assert reply.status_code == 200
            assert 'content="/ops/"' in reply.text or "not built" in reply.text
            assert (await user.get("/elsewhere", headers=BROWSER)).status_code == 404

    run(scenario())
