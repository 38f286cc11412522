"""The page without a mouse, and with the colours of the system instead of its own."""

import re
from typing import Any

from playwright.sync_api import Browser, Page, expect

from tests.dashboard.conftest import PATIENCE_MS, Open
from tests.dashboard.farm import WIDE, Farm, settle, sign_in

# What a screen reader would call what has the focus, as far as our controls name themselves.
FOCUSED = """() => {
  const found = document.activeElement;
  const label = found.labels?.[0]?.textContent ?? found.getAttribute("aria-label");
  return (label ?? found.textContent ?? "").trim();
}"""
NAMELESS = """() => [...document.querySelectorAll("button, a[href], input, select, textarea")]
  .filter((one) => one.checkVisibility())
  .filter((one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.title ||
    one.labels?.length))
  .map((one) => one.outerHTML)"""
PAINTED = "(one) => getComputedStyle(one).backgroundColor"
RING = "() => getComputedStyle(document.activeElement).outlineStyle"


def tab_to(page: Page, name: str) -> None:
    """Presses Tab until the control with this name has the focus."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED) == name:
            return
    raise AssertionError(f"Tab does not lead to {name!r}")


def test_a_job_is_submitted_canceled_and_retried_without_a_mouse(
    open_page: Open, farm: Farm
) -> None:
    page = open_page()
    page.goto(f"{farm.address}/submit?task=shell")
    settle(page)
    tab_to(page, "argv *")
    page.keyboard.type("sleep\n600")
    expect(page.locator("aside").get_by_role("status")).to_have_text("Ready to submit")
    tab_to(page, "Submit")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/jobs/\d+"))
    settle(page)
    tab_to(page, "Cancel job")
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name=re.compile(r"Cancel job \d+\?"))
    expect(dialog).to_be_visible()
    tab_to(page, "Cancel job")
    page.keyboard.press("Enter")
    expect(dialog).to_have_count(0)
    expect(page.locator("header, #content").get_by_text("canceled").first).to_be_visible()
    first = page.url
    tab_to(page, "Retry")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != first and re.search(r"/jobs/\d+", url) is not None)
    farm.http.post(f"/api/v1/jobs/{re.findall(r'/jobs/([0-9]+)', page.url)[0]}/cancel")


def test_every_control_has_a_name(open_page: Open, farm: Farm, places: dict[str, Any]) -> None:
    page = open_page()
    for path in ("/", "/jobs", f"/jobs/{places['painted']}?tab=log", "/workers", "/tokens"):
        page.goto(farm.address + path)
        settle(page)
        assert page.evaluate(NAMELESS) == []


def test_colours_of_the_system_hide_neither_bars_nor_the_focus(
    browser: Browser, farm: Farm, places: dict[str, Any]
) -> None:
    context = browser.new_context(viewport=WIDE, forced_colors="active", reduced_motion="reduce")
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    sign_in(page, farm, farm.token)
    page.goto(f"{farm.address}/jobs/{places['job']}?tab=time")
    settle(page)
    canvas = page.evaluate(PAINTED, page.locator("body").element_handle())
    for part in page.locator("[data-cause]").all():
        assert part.evaluate(PAINTED) != canvas
    chosen, other = (page.get_by_role("tab", name=name) for name in ("Time", "Log"))
    assert chosen.evaluate(PAINTED) != other.evaluate(PAINTED)
    page.keyboard.press("Tab")
    assert page.evaluate(RING) == "solid"
    context.close()
