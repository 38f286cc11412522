"""The guide on code runs as written, and real workers do what it says."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.guide import carry_out
from tests.cli.program import Program
from windlass.domain.matching.functions import KNOWN, MISSING, VERSIONS

LATER = 4_000_000_000  # a time that is not that of the first version
CALL = '{"function": "edited:version"}'
CODE = "import windlass\n\n@windlass.task\ndef version():\n    return {}\n"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A server, and a worker that gives its jobs variables by each option."""
    folder = tmp_path_factory.mktemp("code")
    program = Program(folder / "data")
    program.environment |= {"SHOP_A": "a", "SHOP_B": "b", "OTHER": "o", "WINDLASS_SHOP": "w"}
    (folder / "env").write_text("FILED='from a file'\n")
    words = ("--env", "OTHER", "--env", "SET=v", "--pass-env", "SHOP_*", "--pass-env", "WINDLASS_*",
             "--env-file", str(folder / "env"))  # fmt: skip
    with program.running("up", "--port", "0", "--workers", "1", *words) as process:
        assert process.stdout is not None
        assert "windlass is up" in process.stdout.readline()
        yield program


def until(found: Callable[[], Any], tries: int = 200) -> Any:
    """Asks until there is an answer; each question takes a while."""
    for _ in range(tries):
        answer = found()
        if answer:
            return answer
    raise AssertionError("no answer")


def result(program: Program, *words: str) -> Any:
    """Submits a call and returns its result."""
    job = program.text("submit", "--task", "python", "--args", CALL, *words)

    def ended() -> Any:
        shown = program.json("show", job)
        return [shown["result"]] if shown["state"] == "completed" else None

    return until(ended)[0]


def test_variables_reach_jobs_of_the_workers_of_up(program: Program) -> None:
    job = program.text("submit", "--", "sh", "-c", "env; kill $$")
    until(lambda: program.json("show", job)["state"] == "failed")
    seen = dict(line.split("=", 1) for line in program.text("logs", job).splitlines())
    named = {name: seen.get(name) for name in ("OTHER", "SET", "SHOP_A", "SHOP_B", "FILED")}
    assert named == {
        "OTHER": "o", "SET": "v", "SHOP_A": "a", "SHOP_B": "b", "FILED": "from a file",
    }  # fmt: skip
    assert "WINDLASS_SHOP" not in seen
    assert "WINDLASS_DATA" not in seen


def test_the_guide_runs(program: Program, tmp_path: Path) -> None:
    try:
        said = carry_out("code.md", program, tmp_path)
        assert '"ann from here"' in said[1]
        fax = (tmp_path / "fax").read_text().strip()

        def tried() -> str | None:
            told = program.text("explain", fax)
            return told if "mailer" in told and told.count("No module named") else None

        assert "shop.old:send_fax" in until(tried)
        mailer = program.json("workers", "show", "mailer")["metadata"]
        assert mailer[KNOWN] == ["shop.tasks:send_mail"]
        assert mailer[VERSIONS] == {"shop.tasks:send_mail": "1"}
        assert "shop.old:send_fax" in mailer[MISSING]
        assert program.json("show", fax)["state"] == "queued"
    finally:
        os.kill(int((tmp_path / "mailer.pid").read_text()), signal.SIGTERM)


def test_an_edit_changes_nothing_until_a_worker_reloads(program: Program, tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    file.write_text(CODE.format(1))
    words = ("worker", "--name", "dev", "--slots", "4", "--reload")
    environment = program.environment | {"WINDLASS_DATA": str(program.data)}
    command = [sys.executable, "-m", "windlass", *words]
    with subprocess.Popen(
        command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True
    ) as worker:
        try:
            assert result(program) == 1
            file.write_text(CODE.format(22))
            os.utime(file, (LATER, LATER))
            # The worker notices by itself, lets jobs finish and starts again.
            assert worker.stderr is not None
            said = ""
            while said.count("enrolled") < 2:
                line = worker.stderr.readline()
                assert line, said
                said += line
            assert "code_changed" in said
            assert [result(program) for _ in range(2)] == [22, 22]
        finally:
            worker.terminate()
            worker.communicate(timeout=60)


def test_up_reloads_its_workers(tmp_path: Path) -> None:
    file = tmp_path / "edited.py"
    file.write_text(CODE.format(1))
    program = Program(tmp_path / "data")
    program.environment |= {"PYTHONPATH": f"{tmp_path}{os.pathsep}{os.getcwd()}/src"}
    words = ("up", "--port", "0", "--workers", "1", "--reload", "--import", "edited")
    with program.running(*words) as process:
        assert process.stdout is not None
        assert "windlass is up" in process.stdout.readline()
        assert result(program) == 1
        file.write_text(CODE.format(22).replace("version()", "version(more=0)"))
        os.utime(file, (LATER, LATER))
        said = ""
        while "code has changed" not in said:
            said = process.stdout.readline()
            assert said
        # The server does not refuse what only the new code takes.
        assert result(program) == 22
        call = '{"function": "edited:version", "kwargs": {"more": 1}}'
        assert program("submit", "--task", "python", "--args", call).returncode == 0
