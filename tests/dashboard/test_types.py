"""The types of the page follow the description of the API."""

from pathlib import Path

import hatch_build


def test_the_types_of_the_api_are_current(tmp_path: Path) -> None:
    fresh = tmp_path / "schema.d.ts"
    hatch_build.write_types(str(fresh))
    kept = (hatch_build.SOURCES / hatch_build.TYPES).read_text()
    assert kept == fresh.read_text(), "run `make dashboard-types`"


def test_the_lock_names_no_host_and_has_a_digest_for_each_package() -> None:
    lock = (hatch_build.SOURCES / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    packages = hatch_build.locked()
    assert len(packages) > 50
    assert [name for name, one in packages.items() if "integrity" not in one] == []
