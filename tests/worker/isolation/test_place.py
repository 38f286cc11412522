"""The folder in which jobs of other users find what is theirs."""

import os
from pathlib import Path

from windlass.worker.isolation.job_users import YOUNG_S, UserPlace


def test_a_place_removes_those_of_killed_workers_and_no_others(tmp_path: Path) -> None:
    alive, killed, fresh = (UserPlace(Path(name), tmp_path) for name in ("/a", "/b", "/c"))
    alive.open()
    for old in (killed, fresh):
        old.path.mkdir()
        (old.path / "scratch").mkdir()
    for old in (alive, killed):
        past = old.path.stat().st_mtime - 2 * YOUNG_S
        os.utime(old.path, (past, past))
    own = UserPlace(Path("/d"), tmp_path)
    own.open()
    assert set(tmp_path.iterdir()) == {alive.path, fresh.path, own.path}
    assert own.path.stat().st_mode & 0o777 == 0o711
    for place in (alive, own):
        place.close()
    assert list(tmp_path.iterdir()) == [fresh.path]
