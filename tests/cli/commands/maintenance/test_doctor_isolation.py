"""What `windlass doctor` says about the isolation of jobs, to root and to other users."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.debian import missing_reason
from tests.support.unprivileged import become_user, open_python
from windlass.cli.commands.maintenance.doctor import examine_isolation, namespaces_of
from windlass.messages.workers import WorkerInfo
from windlass.worker.keeper import landlock

SOURCES = Path(__file__).parents[4]
ORDINARY = 69_999  # a uid without an account
AS_OTHER = """
import json, sys
from pathlib import Path
from windlass.cli.commands.maintenance.doctor import examine_isolation
print(json.dumps({found.check: found[1:] for found in examine_isolation(Path(sys.argv[1]))}))
"""


def _worker(name: str, mode: str, **metadata: object) -> WorkerInfo:
    return WorkerInfo(
        id=1, name=name, status="idle", incarnation=1, slots=1, held=0, last_seen="",
        enrolled_at="", reason=None, static={}, dynamic={},
        metadata={"isolation:default": mode, **metadata},
    )  # fmt: skip


def test_doctor_says_which_namespaces_share_workers_without_isolation() -> None:
    workers = [
        _worker("apart", "sandbox"),
        _worker("one", "process", namespaces=["default"]),
        _worker("another", "process", namespaces=["default"]),
        _worker("two", "process", namespaces=["a", "b"]),
        _worker("all", "process"),
    ]
    only, two, everyone = namespaces_of(workers)
    assert (only.state, two.state, everyone.state) == ("ok", "note", "note")
    assert only.detail.startswith("jobs in process on one, another are of namespace default only")
    assert "workers set NAME namespaces=a,b" in only.detail
    assert two.detail == "jobs in process on two: namespaces a, b can get at each other's files"
    assert "on all: all namespaces" in everyone.detail


Findings = dict[str, tuple[str, str]]


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that every user can pass."""
    with tempfile.TemporaryDirectory(prefix="windlass-") as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def _here(data: Path) -> Findings:
    return {found.check: (found.state, found.detail) for found in examine_isolation(data)}


def _as_other(command: list[str], data: Path) -> Findings:
    """What another user is told; `command` starts Python as that one."""
    paths = [str(SOURCES), str(SOURCES / "src"), *filter(None, sys.path)]
    done = subprocess.run(
        [*command, "-c", AS_OTHER, str(data)], check=True, text=True,
        stdout=subprocess.PIPE, cwd="/",
        env={"PATH": f"{os.environ['PATH']}:/usr/sbin", "PYTHONPATH": os.pathsep.join(paths)},
    )  # fmt: skip
    return {check: (state, detail) for check, (state, detail) in json.loads(done.stdout).items()}


@pytest.mark.skipif(os.geteuid() != 0, reason="is about root")
def test_root_is_told_that_jobs_in_process_can_open_everything(tmp_path: Path) -> None:
    found = _here(tmp_path)
    assert found["isolation process"][0] == found["isolation user"][0] == "ok"
    assert found["files of Windlass"] == (
        "note",
        "open to jobs in process: the worker runs as root, and so do its jobs",
    )
    assert found["limits of jobs"][1].startswith("kept by ")


def test_a_machine_without_the_programs_is_told_which_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    state, detail = _here(tmp_path)["isolation sandbox"]
    assert (state, detail) == (
        "note",
        "not here: bubblewrap is not installed (no bwrap on the PATH)",
    )


def test_a_kernel_without_landlock_is_told_what_stays_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(landlock, "version", lambda: 0)
    monkeypatch.setattr(os, "geteuid", lambda: ORDINARY)
    found = _here(tmp_path)
    assert found["files of Windlass"][0] == found["signals of jobs"][0] == "note"
    assert "no Landlock" in found["files of Windlass"][1]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can start programs as somebody else")
def test_other_users_are_told_what_they_can_do(place: Path) -> None:
    if (why := missing_reason("newuidmap")) is not None:
        pytest.skip(why)
    ordinary = ["setpriv", f"--reuid={ORDINARY}", f"--regid={ORDINARY}", "--clear-groups", "--"]
    found = _as_other([*ordinary, open_python()], Path("/usr"))
    state, detail = found["isolation user"]
    assert state == "note"
    assert detail.endswith("not run as root, and /etc/subuid has no entry for its user")
    assert found["files of Windlass"] == ("ok", "closed to jobs in process (rules)")
    assert found["signals of jobs"][0] == "ok"
    found = _as_other([*become_user(place, place), sys.executable], place)
    assert found["isolation user"] == ("ok", "workers of this user can do it")
    assert found["files of Windlass"] == ("ok", "closed to jobs in process (view)")
