"""The lifespan of Starlette and FastAPI applications: what it opens, it closes."""

import asyncio
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import HTTPConnection

import windlass
from tests.support.running import run
from windlass.contrib.starlette import WindlassApi, WindlassLifespan, client_of
from windlass.domain.values.errors import Conflict


def application() -> Any:
    return SimpleNamespace(state=SimpleNamespace())


def test_the_client_of_a_lifespan_is_closed_at_its_end() -> None:
    hung_up = asyncio.Event()

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 403 no\r\nContent-Length: 0\r\n\r\n")
        assert await reader.read() == b""
        writer.close()
        hung_up.set()

    async def scene() -> None:
        app = application()
        server = await asyncio.start_server(refuse, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, asyncio.timeout(30):
            async with WindlassLifespan(f"http://127.0.0.1:{port}", "t")(app):
                client = client_of(HTTPConnection({"type": "http", "app": app}))
                with pytest.raises(windlass.ServerError):
                    await client.job(1).info()
                assert not hung_up.is_set()
            await hung_up.wait()

    run(scene())


def test_a_client_that_is_given_stays_open_and_a_missing_one_is_explained() -> None:
    async def scene() -> None:
        app = application()
        async with windlass.AsyncClient.embedded(":memory:", workers=0) as client:
            async with WindlassLifespan(client=client)(app):
                assert app.state.windlass is client
            job = await client.submit("shell", argv=["true"])
            assert (await job.info()).state == "queued"
        with pytest.raises(Conflict, match="WindlassLifespan"):
            client_of(HTTPConnection({"type": "http", "app": application()}))

    run(scene())


def test_a_lifespan_with_a_spool_keeps_jobs_that_no_server_takes(tmp_path: Path) -> None:
    async def scene() -> None:
        app = application()
        with socket.create_server(("127.0.0.1", 0)) as server:
            nobody = f"http://127.0.0.1:{server.getsockname()[1]}"
        async with WindlassLifespan(nobody, "t", timeout=1, spool=tmp_path / "spool")(app):
            client = client_of(HTTPConnection({"type": "http", "app": app}))
            with pytest.raises(Conflict, match="it has no id yet"):
                _ = (await client.submit("shell", argv=["true"])).id

    run(scene())


def test_a_lifespan_of_the_application_runs_inside() -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def own(app: Any) -> AsyncIterator[dict[str, int]]:
        steps.append(f"open {hasattr(app.state, 'windlass')}")
        yield {"kept": 1}
        steps.append("close")

    async def scene() -> object:
        async with WindlassLifespan("http://127.0.0.1:9", "t", then=own)(application()) as kept:
            return kept

    assert run(scene()) == {"kept": 1}
    assert steps == ["open True", "close"]


@pytest.mark.parametrize("dashboard", [True, False])
def test_browsers_get_the_page_unless_it_is_left_out(tmp_path: Path, dashboard: bool) -> None:
    async def scene() -> None:
        api = WindlassApi("memory:", "memory:", tmp_path, dashboard=dashboard)
        app = Starlette(lifespan=WindlassLifespan(api=api))
        app.mount("/windlass", api)
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as web,
        ):
            page = await web.get("/windlass/jobs", headers={"accept": "text/html"})
            assert (page.status_code == 200) == dashboard
            own = {"Authorization": f"Bearer {(tmp_path / 'admin-token').read_text().strip()}"}
            assert (await web.get("/windlass/api/v1/jobs", headers=own)).status_code == 200
            assert (await web.get("/windlass/api/v1/jobs")).status_code == 401
        with pytest.raises(Conflict, match="while its lifespan runs"):
            await api({"type": "http", "path": "/"}, None, None)  # type: ignore[arg-type]

    run(scene())


LOGS = """
import asyncio, structlog
from windlass.contrib.starlette import WindlassApi

async def main():
    async with WindlassApi("memory:", "memory:", "data").running():
        structlog.get_logger().info("quiet")
        structlog.get_logger().warning("loud")

asyncio.run(main())
"""


def test_a_mounted_api_logs_warnings_only_and_not_to_the_standard_output(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOGS], cwd=tmp_path, capture_output=True, text=True,
        timeout=60, check=True,
    )  # fmt: skip
    assert done.stdout == ""
    assert "loud" in done.stderr
    assert "quiet" not in done.stderr
    assert "loop ran" not in done.stderr


def test_a_token_file_under_its_former_name_is_kept(tmp_path: Path) -> None:
    async def token() -> str | None:
        api = WindlassApi(f"sqlite:{tmp_path}/jobs.db", "memory:", tmp_path)
        async with api.running():
            return api.token

    first = run(token())
    (tmp_path / "admin-token").rename(tmp_path / "admin.token")
    assert run(token()) == first
    assert (tmp_path / "admin-token").read_text().strip() == first
