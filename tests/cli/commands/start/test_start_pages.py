"""The commands of the README and of the pages that people read first do what the pages say."""

import re
import shlex
from pathlib import Path

import pytest

from tests.cli.guide import carry_out
from tests.cli.program import Program

ROOT = Path(__file__).resolve().parents[4]
COMMANDS = re.compile(r"^```\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_first_job_is_told_as_it_goes(up: Program, tmp_path: Path) -> None:
    hello, submitted, failed, waiting = carry_out("../start/first-job.md", up, tmp_path)
    assert hello == "hello\n"
    assert "working\ndone" in submitted
    assert "completed" in submitted
    assert "the job exited with 3" in failed
    assert "try 2" in failed
    assert "it needs memory ≥ 4 TiB" in waiting


def test_the_first_workflow_is_told_as_it_goes(up: Program, tmp_path: Path) -> None:
    (said,) = carry_out("../start/first-workflow.md", up, tmp_path)
    assert "nothing was submitted" in said
    ended = dict(re.findall(r"^(\S+) \d+: (\w+)", said, re.MULTILINE))
    assert ended == {
        "fetch": "completed", "lint": "failed", "test[3.11]": "completed",
        "test[3.13]": "completed", "publish": "completed",
    }  # fmt: skip


def test_the_first_farm_is_written(up: Program, tmp_path: Path) -> None:
    (said,) = carry_out("../start/first-farm.md", up, tmp_path)
    page = (ROOT / "docs/start/first-farm.md").read_text()
    named = set(re.findall(r"`(?:sh myfarm/)?([\w-]+\.(?:sh|service))`", page))
    assert named == {"certificates.sh", "windlass-server.service", "windlass-worker.service"}
    assert named <= set(said.split())


@pytest.mark.parametrize(
    "page",
    [
        "../concepts/index.md", "../start/install.md", "build-farm.md", "qa.md", "security.md",
        "transcoding.md", "troubleshooting.md", "upgrades.md",
    ],
)  # fmt: skip
def test_the_commands_of_a_page_run(page: str, up: Program, tmp_path: Path) -> None:
    assert all(carry_out(page, up, tmp_path))


@pytest.mark.parametrize(
    "page", sorted((ROOT / "docs/coming-from").glob("*.md")), ids=lambda page: page.stem
)
def test_what_others_know_works_here(page: Path, up: Program, tmp_path: Path) -> None:
    said = carry_out(f"../coming-from/{page.name}", up, tmp_path)
    assert all(said)
    # Tasks are shown in Python, which `test_docs_run.py` runs; the index has links only.
    assert said or "```python" in page.read_text() or page.stem == "index"


def test_the_commands_of_the_readme_run(up: Program, tmp_path: Path) -> None:
    install, minute = COMMANDS.findall((ROOT / "README.md").read_text())
    assert [line.partition("#")[0].strip() for line in install.splitlines()] == [
        "pip install windlass", "windlass up", "windlass run -- echo hello",
    ]  # fmt: skip
    for line in minute.splitlines():
        words = shlex.split(line, comments=True)
        if words[1] == "explain":
            words[2] = str(up.json("jobs", "--limit", "1")[0]["id"])
        done = up(*(str(ROOT / word) if word.endswith(".yaml") else word for word in words[1:]))
        assert done.returncode == 0, (words, done.stdout, done.stderr)


def test_every_extra_that_the_page_names_exists() -> None:
    page = (ROOT / "docs/start/install.md").read_text()
    rows = re.findall(r"^\| (`.*?) \|", page, re.MULTILINE)
    named = set(re.findall(r"`(\w+)`", " ".join(rows)))
    project = (ROOT / "pyproject.toml").read_text()
    assert "postgres" in named
    assert {name for name in named if f"\n{name} = [" not in project} == set()
