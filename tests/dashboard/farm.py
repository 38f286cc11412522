"""A real server with a real worker, and browsers that are signed in to it."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import httpx
from playwright.sync_api import Browser, Page, expect, sync_playwright

from tests.dashboard import chromium
from windlass.front import Client

ROOT: Final = Path(__file__).parent.parent.parent
STARTED: Final = re.compile(r"windlass is up at (\S+)")
WIDE: Final[Any] = {"width": 1360, "height": 860}
PHONE: Final[Any] = {"width": 390, "height": 844}


class Farm:
    """A running server: its address, its admin token, and a client with it."""

    def __init__(self, address: str, token: str) -> None:
        self.address = address
        self.token = token
        self.client = Client(address, token=token)
        headers = {"Authorization": f"Bearer {token}"}
        self.http = httpx.Client(base_url=address, headers=headers, timeout=30)
        self._tokens: dict[tuple[str, ...], str] = {}

    def token_of(self, role: str, *namespaces: str) -> str:
        """The token of a role, made once."""
        key = (role, *namespaces)
        if key not in self._tokens:
            body = {"name": f"{' '.join(key)} of tests", "role": role, "namespaces": namespaces}
            reply = self.http.post("/api/v1/tokens", json=body)
            assert reply.status_code == 201, reply.text
            self._tokens[key] = reply.json()["token"]
        return self._tokens[key]

    def submit(self, *argv: str, **options: Any) -> int:
        """Submits a shell job and returns its number."""
        job = {"task": "shell", "args": {"argv": list(argv)}, **options}
        reply = self.http.post("/api/v1/jobs", json={"jobs": [job]})
        assert reply.status_code == 201, reply.text
        return int(reply.json()["ids"][0])

    def workflow(self, name: str, *jobs: dict[str, Any]) -> int:
        """Submits a workflow of shell jobs and returns its number."""
        common = {"task": "shell", "args": {"argv": ["true"]}, "priority": "high"}
        body = {"jobs": [{**common, **job} for job in jobs], "workflow": {"name": name}}
        reply = self.http.post("/api/v1/jobs", json=body)
        assert reply.status_code == 201, reply.text
        return int(reply.json()["workflow"])

    def wait_for_figures(self) -> None:
        """Waits until the overview has figures: the server writes them once a minute."""
        never = self.submit("true", requires=["memory>=8TiB"], name="never runs")
        for _ in range(150):
            if self.http.get("/api/v1/overview").json()["queues"]:
                break
            self.http.get(f"/api/v1/jobs/{never}/wait", params={"timeout": 1})
        else:
            raise AssertionError("the overview has no figures")
        self.http.post(f"/api/v1/jobs/{never}/cancel")

    def wait(self, job: int) -> dict[str, Any]:
        """Waits until a job has ended; returns it."""
        reply = self.http.get(f"/api/v1/jobs/{job}/wait", params={"timeout": 20})
        shown: dict[str, Any] = reply.json()
        assert shown["finished_at"] is not None, shown
        return shown


@contextmanager
def running_farm(data: Path, *options: str, port: int = 0) -> Iterator[Farm]:
    """`windlass up` on a free port or on this one, until the end."""
    command = [
        sys.executable, "-m", "windlass", "up", "--port", str(port), "--data", str(data),
        "--slots", "6", "--import", "examples.demo_tasks", *options,
    ]  # fmt: skip
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
        cwd=ROOT,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        for line in process.stdout:
            found = STARTED.search(line)
            if found:
                break
        else:
            raise AssertionError("the server did not start")
        farm = Farm(found[1], (data / "admin-token").read_text().strip())
        try:
            yield farm
        finally:
            farm.http.close()
            farm.client.close()
    finally:
        _stop(process)
        if process.stdout is not None:
            process.stdout.close()


def _stop(process: "subprocess.Popen[str]") -> None:
    """Stops the server: the first signal lets jobs end, the second one does not."""
    for patience in (1, 30):
        process.terminate()
        try:
            process.wait(timeout=patience)
            return
        except subprocess.TimeoutExpired:
            continue
    process.kill()
    process.wait()


@contextmanager
def running_browser() -> Iterator[Browser]:
    """Chromium without a window."""
    program = chromium.unpacked()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=list(chromium.FLAGS), env=chromium.environment(program)
        )
        try:
            yield browser
        finally:
            browser.close()


def sign_in(page: Page, farm: Farm, token: str) -> None:
    """Signs in without the form: the cookie is the same."""
    reply = page.context.request.post(
        f"{farm.address}/auth/session", data={"token": token}, headers={"Origin": farm.address}
    )
    assert reply.status == 201, reply.text()


def settle(page: Page) -> None:
    """Waits until the view has been loaded and its first answers have come."""
    page.locator("#content h1").first.wait_for()
    expect(page.locator("[role=status][aria-label^=Loading]")).to_have_count(0)
    page.evaluate("() => document.fonts.ready.then(() => new Promise(requestAnimationFrame))")
