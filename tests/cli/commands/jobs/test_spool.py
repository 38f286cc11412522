"""`windlass spool` lists what waits in a spool, and delivers it."""

import json
from pathlib import Path

import msgspec

from tests.cli.program import Program
from windlass.client.spool import SpoolFolder
from windlass.domain.job.job import JobSpec
from windlass.messages.jobs import SubmitRequest


def _keep(folder: SpoolFolder, server: str, *jobs: JobSpec) -> None:
    request = SubmitRequest(jobs=list(jobs), key=f"key of {len(jobs)}")
    folder.add(server, msgspec.json.encode(request))


def test_what_waits_is_listed_and_delivered_in_order(up: Program, tmp_path: Path) -> None:
    server = json.loads((up.data / "server.json").read_text())["address"]
    folder = SpoolFolder(tmp_path / "spool")
    where = str(folder.path)
    assert "nothing waits" in up.text("spool", where)
    names = [f"kept-{one}" for one in range(4)]
    _keep(
        folder,
        server,
        *(JobSpec(task="shell", args={"argv": ["true"]}, name=name) for name in names),
    )
    _keep(folder, "http://elsewhere.example", JobSpec(task="mail"))
    folder.add(server, b"rubbish")
    shown = up.text("spool", where)
    assert "kept-0, kept-1, kept-2, …" in shown
    assert "http://elsewhere.example" in shown
    assert [one["jobs"] for one in up.json("spool", where)] == [names, ["mail"], ["cannot be read"]]
    told = up.text("spool", where, "--deliver")
    assert "1 submission delivered" in told
    assert "1 refused: " in told
    assert [one["jobs"] for one in up.json("spool", where)] == [["mail"]]
    found = sorted(up.json("jobs"), key=lambda job: int(job["id"]))
    assert [job["name"] for job in found if job["name"] in names] == names


def test_a_server_that_is_away_and_a_folder_without_a_spool_are_named(
    up: Program, tmp_path: Path
) -> None:
    nothing = up("spool", str(tmp_path))
    assert nothing.returncode != 0
    assert "the folder of a spool" in nothing.stderr
    folder = SpoolFolder(tmp_path / "spool")
    away = "http://127.0.0.1:9"
    _keep(folder, away, JobSpec(task="mail"))
    words = ("spool", str(folder.path), "--deliver", "--server", away, "--reconnect", "100ms")
    late = up(*words, WINDLASS_TOKEN="t")
    assert late.returncode != 0
    assert f"the server {away} did not take all submissions within 0.1 s" in late.stderr
    assert len(folder.waiting()) == 1
