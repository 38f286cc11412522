"""`make release` is rehearsed: its steps on a small repository, and all of it in the long form."""

import hashlib
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from tests.supply.release import CHANGELOG, FILES, PROJECTS
from tests.supply.requirements import ROOT
from tests.support.forms import LONG

VERSION: Final = "7.8.9"
ENVIRONMENT: Final = {
    **os.environ, "PYTHONPATH": str(ROOT), "GIT_CONFIG_GLOBAL": os.devnull,
    **{f"GIT_{who}_{what}": "rehearsal@example.org"
       for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}  # fmt: skip
Step = Callable[..., "subprocess.CompletedProcess[str]"]


def run(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        words, cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository with the files that a release changes."""
    for name in (*PROJECTS, CHANGELOG):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    (tmp_path / ".gitignore").write_text("dist\n")
    for words in (("init", "--quiet"), ("add", "."), ("commit", "--quiet", "--message", "First")):
        assert run(tmp_path, "git", *words).returncode == 0
    return tmp_path


@pytest.fixture
def step(checkout: Path) -> Step:
    return lambda *words: run(checkout, sys.executable, "-m", "tests.supply.release", *words)


def make_files(checkout: Path) -> None:
    """Writes files with the names of a release, and their digests."""
    dist = checkout / "dist"
    dist.mkdir()
    lines = []
    for name in (one.format(VERSION) for one in FILES):
        (dist / name).write_text(name)
        lines.append(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}")
    (dist / "SHA256SUMS").write_text("\n".join(lines))


def test_a_release_is_a_changelog_entry_versions_a_commit_and_a_tag(
    checkout: Path, step: Step
) -> None:
    new = (checkout / CHANGELOG).read_text().partition("## [Unreleased]\n")[2]
    for _ in range(2):  # a step that is repeated changes nothing
        assert step("prepare", VERSION).returncode == 0
    text = (checkout / CHANGELOG).read_text()
    assert text.count("## [Unreleased]\n\nNothing yet.\n\n## [7.8.9] - 20") == 1
    assert text.endswith(new)
    core, fuzz = (tomllib.loads((checkout / one).read_text())["project"] for one in PROJECTS)
    assert core["version"] == fuzz["version"] == VERSION
    assert f"windlass=={VERSION}" in fuzz["dependencies"]
    assert core["optional-dependencies"]["fuzz"] == [f"windlass-fuzz[s3]=={VERSION}"]
    make_files(checkout)
    assert step("tag", VERSION, "--unsigned").returncode == 0
    assert run(checkout, "git", "describe").stdout == f"v{VERSION}\n"
    assert run(checkout, "git", "log", "--format=%s").stdout == f"Release {VERSION}\nFirst\n"
    later = step("prepare", "7.8.8")
    assert "expected a version above 7.8.9" in later.stderr


def test_what_is_not_committed_or_not_built_is_not_released(checkout: Path, step: Step) -> None:
    assert "expected VERSION=1.2.3, got 'next'" in step("prepare", "next").stderr
    (checkout / "stray").touch()
    assert "expected a clean working tree" in step("prepare", VERSION).stderr
    (checkout / "stray").unlink()
    assert "expected the last commit to be" in step("tag", VERSION, "--unsigned").stderr
    assert step("prepare", VERSION).returncode == 0
    make_files(checkout)
    (checkout / "dist" / f"windlass-{VERSION}.tar.gz").write_text("something else")
    assert "is not what dist/SHA256SUMS lists" in step("tag", VERSION, "--unsigned").stderr
    (checkout / "dist" / f"windlass-{VERSION}.tar.gz").unlink()
    assert "run `make release-files`" in step("tag", VERSION, "--unsigned").stderr
    assert run(checkout, "git", "tag").stdout == ""
    assert "it says nothing" in step("prepare", "7.9.0").stderr


if LONG:

    def test_the_whole_command_leaves_a_tag_and_files_that_install(tmp_path: Path) -> None:
        clone = tmp_path / "clone"
        assert run(tmp_path, "git", "clone", "--quiet", str(ROOT), str(clone)).returncode == 0
        (clone / "dashboard" / "node_modules").symlink_to(ROOT / "dashboard" / "node_modules")
        (clone / ".venv").symlink_to(sys.prefix)
        (clone / ".git" / "info" / "exclude").write_text(".venv\n")
        stamp = tmp_path / "stamp"  # the tools of this run are new enough
        stamp.write_text(str(clone))
        os.utime(stamp, (2**32, 2**32))
        made = run(
            clone, "make", "release", f"VERSION={VERSION}", f"STAMP={stamp}", "ARGS=--unsigned",
        )  # fmt: skip
        assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-4000:]
        assert run(clone, "git", "describe").stdout == f"v{VERSION}\n"
        wheel = clone / "dist" / f"windlass-{VERSION}-py3-none-any.whl"
        target = tmp_path / "installed"
        words = ("-m", "pip", "install", "--quiet", "--no-deps", "--target", str(target))
        assert run(clone, sys.executable, *words, str(wheel)).returncode == 0
        assert (target / f"windlass-{VERSION}.dist-info").is_dir()
