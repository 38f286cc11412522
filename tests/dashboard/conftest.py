"""One browser and one server with a worker for all tests of the folder."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from examples import demo_farm
from tests.dashboard import fuzz_bucket
from tests.dashboard.farm import PHONE, WIDE, Farm, running_browser, running_farm, sign_in
from tests.dashboard.pictures import places_of

Open = Callable[..., Page]


# Bounds a hang: a busy machine takes seconds to draw a page.
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)


@pytest.hookimpl(tryfirst=True)  # before groups are read
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Lets one process run all of them: they share a browser and a server."""
    here = Path(__file__).parent
    for item in items:
        if item.path.is_relative_to(here):
            item.add_marker(pytest.mark.xdist_group("dashboard"))
            item.add_marker(pytest.mark.slow)


@pytest.fixture(scope="package")
def farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """A server with a worker, and something to see in every view."""
    solver = fuzz_bucket.make(tmp_path_factory.mktemp("fuzzing"))
    with running_farm(tmp_path_factory.mktemp("farm"), "--fuzz", solver) as started:
        demo_farm.fill(started.client)
        yield started


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One Chromium for all tests of the folder.

    It ends with the folder: while it runs, this process has a running loop, which other tests mind.
    """
    with running_browser() as started:
        yield started


@pytest.fixture(scope="package")
def places(farm: Farm) -> dict[str, Any]:
    """What stands for the braces in `VIEWS`."""
    return places_of(farm)


@pytest.fixture
def open_page(browser: Browser, farm: Farm) -> Iterator[Open]:
    """Opens pages that are signed in as a role; their errors fail the test."""
    contexts = []
    problems: list[str] = []

    def open_one(
        role: str | None = "admin", *namespaces: str, phone: bool = False, strict: bool = True
    ) -> Page:
        context = browser.new_context(viewport=PHONE if phone else WIDE, locale="en-US")
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        page = context.new_page()
        if strict:
            page.on("pageerror", lambda error: problems.append(str(error)))
            page.on("console", lambda said: problems.append(said.text) if _is_ours(said) else None)
        if role == "admin" and not namespaces:
            sign_in(page, farm, farm.token)
        elif role is not None:
            sign_in(page, farm, farm.token_of(role, *namespaces))
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert problems == []


def _is_ours(said: Any) -> bool:
    """Returns whether our code is at fault: a refused request is part of some tests."""
    return said.type == "error" and "Failed to load resource" not in said.text
