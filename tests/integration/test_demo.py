"""`make demo` works: what it runs, on an empty machine's settings, and what it says."""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from examples.demo import end_as_with_ctrl_c
from tests.support.waiting import until
from windlass.client.blocking.client import Client
from windlass.providers.local import workers_below

pytestmark = pytest.mark.slow

ROOT: Final = Path(__file__).parent.parent.parent
MAX_S: Final = 300
LINK: Final = re.compile(r"dashboard: http\S+/sign-in#code=link_[\w-]{43}$", re.MULTILINE)
STATES: Final = {
    "completed",
    "failed",
    "canceled",
    "aborted",
    "queued",
    "blocked",
    "running",
    "suspended",
}


@pytest.fixture
def temporary() -> Iterator[Path]:
    """An empty folder with a short path: a worker whose path is long keeps its socket elsewhere."""
    with tempfile.TemporaryDirectory(prefix="wd-") as folder:
        yield Path(folder)


def test_the_demo_stays_with_something_in_every_view_and_leaves_nothing(
    tmp_path: Path, temporary: Path
) -> None:
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("WINDLASS", "XDG")) or name == "WINDLASS_TESTS"
    }
    environment = kept | {"HOME": str(tmp_path), "TMPDIR": str(temporary), "COLUMNS": "100"}
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "examples.demo", "--stay"],
        cwd=ROOT, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as demo:  # fmt: skip
        late = threading.Timer(MAX_S, demo.kill)  # noqa: TID251 - ends a demo that hangs
        late.start()
        assert demo.stdout is not None
        said = ""
        for line in demo.stdout:
            said += line
            if "its dashboard: http" in line:
                assert "/sign-in#code=" in line
                look_around(next(temporary.glob("windlass-demo-*")) / "data")
                os.killpg(demo.pid, signal.SIGINT)  # as Ctrl-C does
        late.cancel()
    assert demo.returncode == 0, said
    for line in (
        "killing worker process",
        "workflow 1 diamond: completed",
        "lint failed",
        "what would let it run: ",
        "verify: the log replays to the state, the invariants hold",
        "ending the farm",
        "done: nothing lost, nothing doubled, nothing left running",
    ):
        assert line in said, (line, said)
    assert len(LINK.findall(said)) == 1, said  # a link that can be clicked: on one line
    assert list(temporary.iterdir()) == []
    assert list(ROOT.glob("*.svg")) == []  # what jobs make goes to their scratch directories
    assert list(workers_below(temporary)) == []


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_whatever_stops_the_demo_ends_it_as_ctrl_c_does(sent: signal.Signals) -> None:
    before = signal.signal(sent, signal.SIG_IGN)  # as for a command in the background of a script
    others = {n: signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)}
    try:
        end_as_with_ctrl_c()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(sent)
    finally:
        for number, handler in {**others, sent: before}.items():
            signal.signal(number, handler)


def look_around(data: Path) -> None:
    """Checks that every view of the dashboard has something to show."""
    with Client(data=data) as client:
        for _ in range(3_000):  # jobs that are on their way to the states below
            states = {job.state for job in client.jobs(limit=500)}
            if states >= STATES and client.questions():
                break
            client.job(1).wait(10)
        assert states >= STATES
        assert {flow["name"] for flow in get(client, "/api/v1/workflows")["workflows"]} >= {
            "build all platforms",
            "deploy to production",
            "broken branch",
        }
        assert client.workers.list()
        assert client.templates.list()
        assert client.schedules.list()
        assert client.pools.list()
        assert any(queue.paused for queue in client.queues.list())

        async def is_found() -> bool:
            (solver,) = (await fetch(client, "/api/v1/fuzz"))["solvers"]
            return bool(solver["open_findings"])

        client.run(until("fuzzing has found the bug", is_found, 180))
        assert set(get(client, "/api/v1/namespaces")["namespaces"]) >= {"default", "media"}


def get(client: Client, path: str) -> Any:
    """Returns what the server answers."""
    return client.run(fetch(client, path))


async def fetch(client: Client, path: str) -> Any:
    """Does the same in async code."""
    return await client.asynchronous.transport.call("GET", path, object)


def test_make_demo_runs_this_demo() -> None:
    assert "\t$(DEMO_VENV)/bin/python -m examples.demo $(ARGS)\n" in (ROOT / "Makefile").read_text()
