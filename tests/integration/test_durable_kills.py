"""Steps of a function survive kills of the server and of its worker, each with its rule."""

import os
import subprocess
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

import windlass
from tests.client.test_restart import Installation
from tests.support.running import run
from tests.support.waiting import until
from windlass.assembly.stores import upgrade_store

PATIENCE = 60
CODE = """
import pathlib, time, windlass

def note(path, text):
    with pathlib.Path(path).open("a") as file:
        file.write(text + "\\n")
    return text

def held(path, text):
    note(path, text)
    while not pathlib.Path(f"{path}-{text}").exists():
        time.sleep(0.01)
    return text

@windlass.task
def order(path: str) -> list[str]:
    return [
        windlass.step("first", note, path, "first"),
        windlass.step("second", held, path, "second"),
        windlass.step("third", held, path, "third"),
        windlass.step("last", note, path, "last"),
    ]

@windlass.task
def paid(path: str) -> object:
    windlass.step("before", note, path, "before")
    return windlass.wait_for("paid", timeout="1h")
"""


class Scene:
    """A server and a worker with one job, whose second and third step end when they may."""

    def __init__(self, place: Path, stack: ExitStack, store: str | None = None) -> None:
        (place / "ordering.py").write_text(CODE)
        self.path = place / "ran"
        self.installed = Installation(place, stack, store)
        paths = os.pathsep.join([str(place), os.environ.get("PYTHONPATH", ""), "src"])
        self.installed.program.environment |= {"PYTHONPATH": paths}
        self.installed.start()
        client = windlass.Client(data=self.installed.program.data, reconnect=60)
        self.client = stack.enter_context(client)
        self._state = str(place / "state")
        self._stack = stack
        self.worker = self.start_worker()
        self.job = self.submit("order")

    def submit(self, function: str) -> windlass.JobHandle[Any]:
        call = {"function": f"ordering:{function}", "args": [str(self.path)]}
        return self.client.submit(windlass.JobSpec(task="python", args=call))

    def start_worker(self) -> "subprocess.Popen[str]":
        words = ("worker", "--name", "w", "--slots", "1", "--state", self._state)
        return self._stack.enter_context(self.installed.program.running(*words))

    def is_inside(self, step: str, times: int = 1) -> None:
        """Waits until a step has begun so many times."""

        async def is_so() -> bool:
            return self.path.exists() and self.ran().count(step) == times

        run(until(f"step {step} has begun {times} times", is_so, PATIENCE))

    def let_end(self, step: str) -> None:
        Path(f"{self.path}-{step}").touch()

    def ran(self) -> list[str]:
        return self.path.read_text().split()


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest) -> str | None:
    """The address of a store that is ready for a server; None is a file of the server's own."""
    if request.param == "sqlite":
        return None
    address: str = request.getfixturevalue("postgres_dsn")
    run(upgrade_store(address))
    return address


def test_a_step_outlives_a_killed_server_and_runs_again_after_a_killed_worker(
    tmp_path: Path, store: str | None
) -> None:
    with ExitStack() as stack:
        scene = Scene(tmp_path, stack, store)
        scene.is_inside("second")
        scene.installed.kill()
        scene.let_end("second")  # while there is no server to store it
        scene.installed.start()
        scene.is_inside("third")
        scene.worker.kill()
        scene.worker.wait()
        scene.start_worker()
        scene.is_inside("third", 2)  # Its result was not stored: the documented rule.
        scene.let_end("third")
        assert scene.job.result(timeout=PATIENCE) == ["first", "second", "third", "last"]
        # No other step was lost or ran twice.
        assert scene.ran() == ["first", "second", "third", "third", "last"]
        steps = [(step.key, step.state, step.attempt) for step in scene.job.info().steps]
        assert steps == [
            ("first", "done", 1), ("second", "done", 1), ("third", "done", 2), ("last", "done", 2),
        ]  # fmt: skip


def test_server_and_worker_may_be_killed_together_within_a_step_and_while_a_job_waits(
    tmp_path: Path, store: str | None
) -> None:
    with ExitStack() as stack:
        scene = Scene(tmp_path, stack, store)
        scene.is_inside("second")
        waiting = scene.submit("paid")
        scene.worker.kill()
        scene.installed.kill()
        scene.worker.wait()
        scene.installed.start()
        scene.start_worker()
        scene.is_inside("second", 2)
        for step in ("second", "third"):
            scene.let_end(step)
        assert scene.job.result(timeout=PATIENCE) == ["first", "second", "third", "last"]

        async def is_suspended() -> bool:
            return waiting.info().state == "suspended"

        run(until("the other job waits", is_suspended, PATIENCE))
        scene.installed.kill()
        scene.installed.start()
        scene.client.send("paid", {"amount": 3})
        assert waiting.result(timeout=PATIENCE) == {"amount": 3}
        ran = scene.ran()
        assert [ran.count(step) for step in ("first", "second", "third", "last")] == [1, 2, 1, 1]
        assert ran.count("before") == 1
