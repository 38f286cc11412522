"""Which folders a sandbox shows."""

from pathlib import Path

import pytest

from windlass.worker.isolation.sandbox import visible_folders


@pytest.mark.parametrize("where", ["home", "home/..", "link"])
def test_a_worker_that_is_started_at_home_or_above_does_not_show_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    (tmp_path / "link").symlink_to(home)
    monkeypatch.setenv("HOME", str(tmp_path / ("link" if where == "link" else "home")))
    monkeypatch.chdir(tmp_path / where)
    assert not any(home.is_relative_to(shown) for shown in visible_folders((), ()).shared)


def test_the_directory_of_a_project_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "home/project"
    project.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(project)
    assert project in visible_folders((), ()).shared
