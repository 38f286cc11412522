"""Which route a path leads to."""

import pytest

from windlass.operations.dispatch.routes import Router

PATHS = (
    "/",
    "/jobs",
    "/jobs/cancel",
    "/jobs/{job:int}",
    "/jobs/{job:int}/files/{name:path}",
    "/pools/plan",
    "/pools/{name:str}",
)
ROUTER = Router(("GET", path, path) for path in PATHS)


@pytest.mark.parametrize(
    ("path", "route", "values"),
    [
        ("/", "/", {}),
        ("/jobs", "/jobs", {}),
        ("/jobs/", "/jobs", {}),
        ("//jobs//7/", "/jobs/{job:int}", {"job": "7"}),
        ("/jobs/-7", "/jobs/{job:int}", {"job": "-7"}),
        ("/jobs/cancel", "/jobs/cancel", {}),
        ("/jobs/7/files/a/b", "/jobs/{job:int}/files/{name:path}", {"job": "7", "name": "a/b"}),
        ("/jobs/7/files/a//b/", "/jobs/{job:int}/files/{name:path}", {"job": "7", "name": "a/b"}),
        ("/pools/plan", "/pools/plan", {}),
        ("/pools/planet", "/pools/{name:str}", {"name": "planet"}),
    ],
)
def test_a_path_leads_to_its_route(path: str, route: str, values: dict[str, str]) -> None:
    found = ROUTER.find(path)
    assert found is not None
    assert (found.methods, found.values) == ({"GET": route}, values)


@pytest.mark.parametrize(
    "path",
    ["/job", "/jobs/x", "/jobs/1.0", "/jobs/+1", "/jobs/\u0661", "/jobs/7/files", "/pools/a/b"],
)
def test_another_path_leads_nowhere(path: str) -> None:
    assert ROUTER.find(path) is None
