"""The reference pages say what the program says."""

from pathlib import Path

import pytest

import windlass
from tests.site.reference import PAGES
from windlass.operations.dispatch.routes import PLACEHOLDER
from windlass.server.app import API

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "reference"


@pytest.mark.parametrize("name", PAGES)
def test_a_reference_page_is_current(name: str) -> None:
    current = (FOLDER / name).read_text() == PAGES[name]()
    assert current, f"docs/reference/{name} is not current: run `make docs-reference`"


def test_every_command_and_every_option_is_there() -> None:
    commands, options = ((FOLDER / name).read_text() for name in ("cli.md", "configuration.md"))
    for name in ("up", "server", "worker", "run", "jobs", "names set", "db upgrade", "doctor"):
        assert f"\n## windlass {name}\n" in commands
    assert "| `--after` | The jobs that must complete first, by id or name." in commands
    assert "| 3 | no server is known" in commands
    assert "| `retry.max_retries` | retries | `3` |" in options
    assert "| `job_retention` | duration | `30d` | Ended jobs are removed after this." in options


def test_every_public_name_and_every_route_is_there() -> None:
    python, http = ((FOLDER / name).read_text() for name in ("python.md", "http.md"))
    assert {name for name in windlass.__all__ if f"\n### windlass.{name}\n" not in python} == set()
    assert "\n### client.pools\n" in python
    paths = {(one.method, PLACEHOLDER.sub(r"{\1}", one.path)) for one in API}
    routes = {f"### {method} {path}" for method, path in paths}
    assert {route for route in routes if f"\n{route}\n" not in http} == set()
    assert len(routes) > 100
