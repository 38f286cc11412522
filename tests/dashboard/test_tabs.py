"""Many tabs of one browser, which opens six connections to a server for all of them together."""

import re

from playwright.sync_api import Page, expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm, settle

TABS = 8
WAITS = re.compile(r"/log/lines\?.*wait=")
LOOK = """hidden => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def put_behind_others(page: Page) -> None:
    """Without a window, Chromium shows all tabs at once: we tell the page as a browser would."""
    page.evaluate(LOOK, True)


def bring_back(page: Page) -> None:
    page.evaluate(LOOK, False)


def test_tabs_in_the_background_leave_the_connections_to_others_and_catch_up(
    open_page: Open, farm: Farm
) -> None:
    first = page = open_page("operator")
    for _ in range(TABS):
        page.goto(f"{farm.address}/jobs")
        settle(page)
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        put_behind_others(page)
        expect(page.get_by_text("live", exact=True)).to_have_count(0)
        page = first.context.new_page()
    farm.wait(farm.submit("true", name="while nobody looked"))
    bring_back(first)
    expect(first.get_by_text(re.compile(r"\d new job"))).to_be_visible()


def test_a_log_that_nobody_looks_at_is_not_waited_for(open_page: Open, farm: Farm) -> None:
    job = farm.submit("sh", "-c", "echo begun; sleep 600", priority="high")
    page = open_page("operator")
    with page.expect_request(WAITS):
        page.goto(f"{farm.address}/jobs/{job}?tab=log")
    with page.expect_event("requestfailed", lambda request: bool(WAITS.search(request.url))):
        put_behind_others(page)
    with page.expect_request(WAITS):
        bring_back(page)
    farm.http.post(f"/api/v1/jobs/{job}/cancel")
