"""How Windlass's own files are hidden from jobs of the same user."""

import os
from pathlib import Path

import pytest

from windlass.worker.isolation.process import OPEN, choose_hiding, present
from windlass.worker.keeper import landlock

ORDINARY = 69_999


def test_a_data_directory_that_does_not_exist_yet_is_made_to_be_hidden(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: ORDINARY)
    (tmp_path / "file").touch()
    late = tmp_path / "share/windlass"
    assert present((tmp_path, late, tmp_path / "file/x")) == [tmp_path, late]
    assert late.stat().st_mode & 0o777 == 0o700


def test_without_namespaces_files_are_open_where_jobs_can_write_above_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> tuple[int, int]:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "geteuid", lambda: ORDINARY)
    monkeypatch.setattr(landlock, "version", lambda: landlock.SCOPES)
    monkeypatch.setattr("windlass.worker.isolation.process.make_view", refuse)
    found = choose_hiding([tmp_path])
    assert found.way == OPEN
    assert "user namespaces do not work here (Operation not permitted)" in found.reason
