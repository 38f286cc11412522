"""Many tabs of one browser: it opens six connections to a server, and each stream keeps one."""

import re

from playwright.sync_api import Page, expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm, settle

TABS = 8  # more than the connections
STREAMS = 3
WAITS = re.compile(r"/log/lines\?.*wait=")
LOOK = """hidden => {
  Object.defineProperty(document, "hidden", { value: hidden, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}"""


def mark(page: Page) -> str:
    """Returns how the page follows what happens, as its header says."""
    told = page.get_by_role("banner").get_by_text(re.compile("^(live|every 5 s)$"))
    expect(told).to_be_visible()
    return told.inner_text()


def test_more_tabs_than_connections_all_load_and_follow(open_page: Open, farm: Farm) -> None:
    first = open_page()
    tabs = [first, *(first.context.new_page() for _ in range(TABS - 1))]
    for tab in tabs:
        tab.goto(f"{farm.address}/queues?name=of-many-tabs")
        settle(tab)
        mark(tab)
    assert sorted(map(mark, tabs)) == ["every 5 s"] * (TABS - STREAMS) + ["live"] * STREAMS
    never = farm.submit("true", queue="of-many-tabs", requires=["memory>=99TiB"])
    for tab in tabs:
        expect(tab.get_by_role("link", name="of-many-tabs")).to_be_visible()
    farm.http.post(f"/api/v1/jobs/{never}/cancel")


def test_a_tab_without_a_stream_knows_when_the_server_is_away_and_gets_the_next_one_free(
    open_page: Open, farm: Farm
) -> None:
    first = open_page()
    tabs = [first, *(first.context.new_page() for _ in range(STREAMS))]
    for tab in tabs:
        tab.goto(f"{farm.address}/queues")
        settle(tab)
        mark(tab)
    waiting = tabs.pop()
    assert mark(waiting) == "every 5 s"
    waiting.route("**/api/**", lambda route: route.abort())
    away = waiting.get_by_role("alert").filter(has_text="what you see may be old")
    expect(away).to_be_visible()
    waiting.unroute("**/api/**")
    expect(away).to_have_count(0)
    first.close()
    expect(waiting.get_by_role("banner").get_by_text("live", exact=True)).to_be_visible()


OUT_OF_SIGHT = """
let isHidden = true;
Object.defineProperty(document, "hidden", { get: () => isHidden });
window.come = () => {
  isHidden = false;
  document.dispatchEvent(new Event("visibilitychange"));
};
"""


def test_a_tab_out_of_sight_keeps_no_connection_and_catches_up(open_page: Open, farm: Farm) -> None:
    page = open_page()
    page.add_init_script(OUT_OF_SIGHT)
    streams: list[str] = []
    page.on("request", lambda asked: streams.append(asked.url) if "/live?" in asked.url else None)
    page.goto(f"{farm.address}/workflows?text=out+of+sight")
    expect(page.get_by_text("No workflow matches")).to_be_visible()
    flow = farm.workflow("out of sight", {"name": "only"})
    assert streams == []
    page.evaluate("come()")
    found = page.get_by_role("table", name="Workflows").get_by_role("link", name=str(flow))
    expect(found.first).to_be_visible()
    assert len(streams) == 1


def put_behind_others(page: Page) -> None:
    """Without a window, Chromium shows all tabs at once: we tell the page as a browser would."""
    page.evaluate(LOOK, True)


def bring_back(page: Page) -> None:
    page.evaluate(LOOK, False)


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
