"""The example applications of the frameworks answer over HTTP, and their jobs run."""

import asyncio
import re
import subprocess
import sys
from functools import partial
from pathlib import Path

import httpx

import windlass
from tests.examples.conftest import ROOT, web
from tests.support.running import run
from tests.support.waiting import until

UVICORN = ("-m", "uvicorn", "--port", "0")


def without_database(environment: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name != "DATABASE_URL"}


def test_the_fastapi_application_submits_and_waits(environment: dict[str, str]) -> None:
    words = (*UVICORN, "examples.fastapi_app.app:app")
    with web(words, without_database(environment), "Uvicorn running on") as app:
        job = app.post("/shout", params={"text": "hi"}).json()["job"]
        assert app.get(f"/shout/{job}").json() == {"text": "HI"}


def test_the_api_below_a_path_serves_clients_and_refuses_strangers(
    environment: dict[str, str], tmp_path: Path
) -> None:
    own = {**environment, "WINDLASS_DATA": str(tmp_path / "own")}
    words = (*UVICORN, "examples.fastapi_app.app:app")
    with web(words, own, "Uvicorn running on") as app:
        token = (tmp_path / "own" / "admin-token").read_text().strip()
        address = f"{str(app.base_url).rstrip('/')}/windlass"
        assert app.get("/windlass/api/v1/jobs").status_code == 401
        assert app.get("/api/v1/jobs").status_code == 404
        page = app.get("/windlass/jobs", headers={"accept": "text/html"})
        assert 'content="/windlass/"' in page.text  # the page calls the API below the path
        script = re.search(r'src="(/windlass/assets/[^"]+)"', page.text)
        assert script is not None
        assert app.get(script[1]).headers["content-type"].startswith("text/javascript")
        opened = app.post("/windlass/auth/session", json={"token": token})
        assert opened.status_code == 201, opened.text
        assert app.get("/windlass/api/v1/jobs").status_code == 200  # by the cookie
        app.cookies.clear()
        with windlass.Client(address, token) as client:
            job = client.submit("shell", argv=["echo", "hi"])
            assert job.wait(timeout=30).state == "completed"


def test_the_flask_application_serves_many_threads(environment: dict[str, str]) -> None:
    words = ("-m", "flask", "--app", "examples.flask_app.app", "run", "--port", "0")
    with web(words, environment, "Running on") as app:
        counted = run(count_all(str(app.base_url), ["a", "a b", "a b c"] * 4))
    assert counted == [1, 2, 3] * 4


async def count_all(address: str, texts: list[str]) -> list[int]:
    """Sends all texts at the same time; Flask answers each request in a thread of its own."""

    async def count(text: str) -> int:
        job = (await app.post("/count", data={"text": text})).json()["job"]
        words: int = (await app.get(f"/count/{job}")).json()["words"]
        return words

    async with httpx.AsyncClient(base_url=address, timeout=30, trust_env=False) as app:
        return await asyncio.gather(*map(count, texts))


async def has_ended(app: httpx.Client, result: str) -> bool:
    shown = app.get(f"/results/{result}").json()  # noqa: ASYNC212 - nothing else runs
    return shown["status"] in ("SUCCESSFUL", "FAILED")


def manage(environment: dict[str, str], *words: str) -> str:
    """Runs `manage.py` of the example and returns what it says."""
    command = [sys.executable, "-m", "examples.django_app", *words]
    done = subprocess.run(
        command, env=environment, cwd=ROOT, text=True, capture_output=True, check=False
    )
    return done.stdout + done.stderr


def test_the_django_project_submits_in_its_transactions(environment: dict[str, str]) -> None:
    manage(environment, "migrate", "--run-syncdb", "--verbosity", "0")
    words = (*UVICORN, "examples.django_app.asgi:application")
    with web(words, environment, "Uvicorn running on") as app:
        made = app.post("/notes", data={"text": "four"}).json()
        assert app.get(f"/jobs/{made['job']}").json() == {"result": 4}
        run(until("the task has ended", partial(has_ended, app, made["result"]), 30))
        shown = app.get(f"/results/{made['result']}").json()
        assert shown == {"status": "SUCCESSFUL", "value": 4, "errors": []}
        said = manage(environment, "windlass_job", str(made["job"]))
        assert said == f"{made['job']} completed 4\n"

        assert "--pass-env" in manage(environment, "windlass_worker", "--", "--help-all")
        assert "--pass-env" in manage(environment, "windlass_worker", "-v", "1", "--help-all")
        assert "not Django's" in " ".join(manage(environment, "windlass_worker", "--help").split())

        again = app.post("/notes", data={"text": "four"})
        assert again.status_code == 409
        assert "does not exist" in manage(environment, "windlass_job", str(again.json()["job"]))
