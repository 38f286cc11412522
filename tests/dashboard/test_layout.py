"""What lies where: nothing covers anything else, nothing is cut without a sign."""

import re
from typing import Any, NamedTuple
from urllib.parse import quote

import pytest
from playwright.sync_api import Locator, expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import PHONE, Farm, settle

# Cells whose own text is too long for them, and that do not say so by an ellipsis.
CUT = """() => [...document.querySelectorAll("#content [role=cell]")]
  .filter((cell) => [...cell.childNodes].some((node) => node.nodeType === Node.TEXT_NODE))
  .filter((cell) => {
    const style = getComputedStyle(cell);
    return style.display !== "block" || style.textOverflow !== "ellipsis";
  })
  .map((cell) => cell.textContent)"""


class Edges(NamedTuple):
    """Where a part of the page begins and ends."""

    x: float
    y: float
    right: float
    bottom: float


def box_of(place: Locator) -> Edges:
    box = place.bounding_box()
    assert box is not None
    left, top = box["x"], box["y"]
    return Edges(left, top, left + box["width"], top + box["height"])


def test_the_button_that_copies_covers_no_text(
    open_page: Open, farm: Farm, places: dict[str, Any]
) -> None:
    page = open_page(phone=True)
    page.goto(f"{farm.address}/jobs/{places['job']}?tab=reproduce")
    settle(page)
    blocks = page.locator("#content pre").all()
    assert len(blocks) >= 3
    for text in blocks:
        button = text.locator("xpath=..").get_by_role("button")
        assert box_of(text).right <= box_of(button).x


def test_the_chosen_tab_is_in_sight_on_a_phone(open_page: Open, farm: Farm) -> None:
    page = open_page(phone=True)
    page.goto(f"{farm.address}/fuzzing?solver=toy&tab=coverage")
    settle(page)
    chosen = box_of(page.get_by_role("tab", name="Coverage", selected=True))
    tabs = box_of(page.get_by_role("tablist"))
    assert tabs.x <= chosen.x
    assert chosen.right <= tabs.right + 1


@pytest.mark.parametrize("width", [390, 1000, 1280])
@pytest.mark.parametrize("path", ["/jobs", "/queues"])
def test_the_controls_of_another_time_stay_inside_the_header(
    open_page: Open, farm: Farm, width: int, path: str
) -> None:
    page = open_page()
    page.set_viewport_size({"width": width, "height": 800})
    now = farm.http.get("/api/v1/overview").json()["until"]
    page.goto(f"{farm.address}{path}?as_of={quote(now)}")
    settle(page)
    header = box_of(page.get_by_role("banner"))
    status = page.get_by_role("status").filter(has_text="As of")
    for control in (status, page.get_by_role("button", name="Back to now")):
        inside = box_of(control)
        assert header.y <= inside.y
        assert inside.bottom <= header.bottom
        assert inside.right <= width
    assert header.bottom <= box_of(page.get_by_role("heading", level=1)).y


def test_long_text_in_tables_ends_in_an_ellipsis(
    open_page: Open, farm: Farm, places: dict[str, Any]
) -> None:
    page = open_page()
    for path in ("/workflows", "/schedules", "/workflows/{workflow}?table=true"):
        page.goto(farm.address + path.format(**places))
        settle(page)
        assert page.locator("#content [role=cell]").count() > 0
        assert page.evaluate(CUT) == []


def test_a_table_that_fits_is_not_scrolled_sideways(
    open_page: Open, farm: Farm, places: dict[str, Any]
) -> None:
    page = open_page()
    for path in ("/jobs", "/workflows", "/workflows/{run}?tab=compare&with={other}", "/audit"):
        page.goto(farm.address + path.format(**places))
        settle(page)
        table = page.locator("#content [role=table]").first
        assert table.evaluate("one => one.scrollWidth - one.parentElement.clientWidth") <= 0, path


def test_a_text_that_is_cut_off_is_told_whole_under_the_mouse(open_page: Open, farm: Farm) -> None:
    name = f"a name of {'many ' * 30}words"
    job = farm.submit("true", name=name)
    page = open_page(phone=True)
    page.goto(f"{farm.address}/jobs?name={name}")
    settle(page)
    row = page.get_by_role("row").filter(has_text=str(job))
    cut, whole = (row.get_by_role("cell").nth(at) for at in (2, 0))
    for cell in (cut, whole):
        cell.hover()
    expect(cut).to_have_attribute("title", re.compile(re.escape(name)))
    expect(whole).to_have_attribute("title", "")


def test_the_names_of_long_rows_leave_room_for_the_clauses(open_page: Open, farm: Farm) -> None:
    job = farm.submit("true", requires=["memory>=8TiB", "zone==moon"], name="many clauses")
    page = open_page(phone=True)
    page.goto(f"{farm.address}/jobs/{job}")
    settle(page)
    table = page.get_by_role("table", name="Which workers have what it asks for")
    first = box_of(table.get_by_role("rowheader").first)
    assert first.right <= PHONE["width"] / 2
    farm.http.post(f"/api/v1/jobs/{job}/cancel")


def test_menus_stay_inside_a_phone(open_page: Open, farm: Farm, places: dict[str, Any]) -> None:
    page = open_page(phone=True)
    for path, name in (("/jobs", "State"), (f"/jobs/{places['job']}", "More actions")):
        page.goto(farm.address + path)
        settle(page)
        page.get_by_role("button", name=name).click()
        menu = box_of(page.get_by_role("menu"))
        assert menu.x >= 0
        assert menu.right <= PHONE["width"]


def test_a_dialog_of_a_table_begins_on_the_left(open_page: Open, farm: Farm) -> None:
    page = open_page()
    page.goto(f"{farm.address}/queues")
    settle(page)
    page.get_by_role("button", name="Limits").first.click()
    label = page.get_by_role("dialog").get_by_text("Jobs that run at once")
    assert label.evaluate("one => getComputedStyle(one).textAlign") == "left"


def test_a_name_from_right_to_left_shows_its_beginning(open_page: Open, farm: Farm) -> None:
    job = farm.submit("true", name="עבודה לדוגמה " * 12)
    page = open_page(phone=True)
    page.goto(f"{farm.address}/jobs?task=shell")
    settle(page)
    cell = page.get_by_role("row").filter(has_text=str(job)).get_by_role("cell").nth(2)
    assert cell.evaluate("one => getComputedStyle(one).direction") == "rtl"
