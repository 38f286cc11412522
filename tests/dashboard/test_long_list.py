"""A list that is too long for the memory: it scrolls, forgets what is far away, finds it again.

`make bench-browser` measures the same with a million jobs.
"""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor  # noqa: TID251 - beside the browser's loop
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from benchmarks.browser.parts import fill
from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm, running_farm, settle, sign_in

JOBS = 6_000  # more than the page keeps
IN_SIGHT = 80  # more rows than that are never drawn
DRAWN = "document.querySelectorAll('[aria-rowindex]').length"


@pytest.fixture(scope="module")
def long_farm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Farm]:
    """A server over a store with many jobs, most of which have ended."""
    data = tmp_path_factory.mktemp("long") / "data"
    with ThreadPoolExecutor(1) as thread:
        thread.submit(fill, data, JOBS).result()
    with running_farm(data) as farm:
        yield farm


def opened(open_page: Open, farm: Farm, query: str = "") -> Page:
    page = open_page(None)
    sign_in(page, farm, farm.token)
    page.goto(f"{farm.address}/jobs{query}")
    settle(page)
    return page


def to_the_end(page: Page) -> int:
    """Scrolls until all rows have been loaded; returns how many were ever drawn at once."""
    most = 0
    table = page.get_by_role("table", name="Jobs")
    for _ in range(JOBS):
        most = max(most, int(page.evaluate(DRAWN)))
        if table.get_attribute("aria-rowcount") == str(JOBS + 1):
            return most
        page.locator("[data-table]").evaluate("(box) => box.scrollTo(0, box.scrollHeight)")
        page.evaluate("new Promise((done) => requestAnimationFrame(() => done()))")
    raise AssertionError("the end was not reached")


def test_few_rows_are_drawn_and_those_far_away_are_asked_for_again_as_they_are_now(
    open_page: Open, long_farm: Farm
) -> None:
    page = opened(open_page, long_farm, "?sort=oldest")
    expect(page.locator("[aria-rowindex='2']")).to_contain_text("completed")
    assert to_the_end(page) < IN_SIGHT
    oldest = page.locator("[aria-rowindex='2']")
    expect(oldest).to_have_count(0)
    assert long_farm.http.delete("/api/v1/jobs/2").status_code == 200
    with page.expect_response(lambda reply: "/jobs/some?" in reply.url):
        page.locator("[data-table]").evaluate("(box) => box.scrollTo(0, 0)")
    expect(oldest.get_by_role("link", name="1", exact=True)).to_be_visible()
    expect(page.locator("[aria-rowindex='3']")).to_have_text("This job was deleted")
    expect(page.locator("[aria-rowindex='4']")).to_contain_text("completed")


def test_a_search_that_found_little_goes_on_by_itself(open_page: Open, long_farm: Farm) -> None:
    page = opened(open_page, long_farm, "?regex=no-such-job")
    expect(page.get_by_text("No job matches")).to_be_visible()
    expect(page.get_by_text("0 jobs", exact=True)).to_be_visible()


def test_a_search_of_the_past_which_costs_more_goes_on_when_asked(
    open_page: Open, long_farm: Farm
) -> None:
    now = long_farm.http.get("/api/v1/overview").json()["until"]
    page = opened(open_page, long_farm, f"?regex=no-such-job&as_of={quote(now)}")
    expect(page.get_by_text("Nothing found so far among 1,000 jobs.")).to_be_visible()
    page.get_by_role("button", name="Search more jobs").click()
    expect(page.get_by_text("Nothing found so far among 2,000 jobs.")).to_be_visible()
