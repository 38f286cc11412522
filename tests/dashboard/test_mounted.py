"""The dashboard below a path of an application of a user."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from playwright.sync_api import expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import ROOT, Farm, settle, sign_in

SERVER = """
import sys
import uvicorn
from fastapi import FastAPI
from windlass.contrib.fastapi import WindlassApi, WindlassLifespan

folder = sys.argv[1]
api = WindlassApi(f"sqlite:{folder}/jobs.db", f"file://{folder}/blobs", f"{folder}/data")
app = FastAPI(lifespan=WindlassLifespan(api=api))
app.mount("/ops", api)
uvicorn.run(app, host="127.0.0.1", port=0, timeout_graceful_shutdown=1)  # streams are open
"""
PAGE_ALONE = """
import sys
import uvicorn
from fastapi import FastAPI
from windlass import dashboard

app = FastAPI()
app.mount("/ops", dashboard.app(sys.argv[1]))
uvicorn.run(app, host="127.0.0.1", port=0, timeout_graceful_shutdown=1)
"""
RUNNING = re.compile(r"running on (http://127\.0\.0\.1:\d+)")


@contextmanager
def running_application(source: str, argument: str, token: Callable[[], str]) -> Iterator[Farm]:
    """An application that serves Windlass below `/ops`, until the end."""
    process = subprocess.Popen(
        [sys.executable, "-c", source, argument],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=ROOT,
    )  # fmt: skip
    try:
        assert process.stderr is not None
        found = next(filter(None, map(RUNNING.search, process.stderr)), None)
        assert found is not None, "the application did not start"
        farm = Farm(f"{found[1]}/ops", token())
        yield farm
        farm.http.close()
        farm.client.close()
    finally:
        process.terminate()
        process.wait(timeout=60)
        if process.stderr is not None:
            process.stderr.close()


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[Farm]:
    """An application that is a server of Windlass."""
    (tmp_path / "data").mkdir()
    file = tmp_path / "data" / "admin-token"
    with running_application(SERVER, str(tmp_path), lambda: file.read_text().strip()) as farm:
        yield farm


@pytest.fixture
def beside(farm: Farm) -> Iterator[Farm]:
    """An application that has the page of another server."""
    with running_application(PAGE_ALONE, farm.address, lambda: farm.token) as application:
        yield application


@pytest.mark.parametrize("which", ["mounted", "beside"])
def test_all_of_it_works_below_a_path(
    open_page: Open, which: str, request: pytest.FixtureRequest
) -> None:
    mounted: Farm = request.getfixturevalue(which)
    job = mounted.submit("true", name="below a path")
    outside = httpx.get(f"{mounted.address.removesuffix('/ops')}/jobs")
    assert outside.status_code == 404
    page = open_page(None)
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(urlsplit(request.url).path))
    sign_in(page, mounted, mounted.token)
    page.goto(f"{mounted.address}/jobs")
    settle(page)
    link = page.get_by_role("link", name=str(job), exact=True)
    expect(link).to_have_attribute("href", f"/ops/jobs/{job}")
    link.click()
    page.wait_for_url(f"**/ops/jobs/{job}")
    page.reload()
    expect(page.get_by_role("heading", level=1)).to_contain_text("below a path")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    assert {path for path in asked if not path.startswith("/ops/")} == set()
