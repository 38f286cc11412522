"""The list of jobs: filters in the URL, rows that stay where they are, actions on many."""

import re
from typing import Any

from playwright.sync_api import Locator, Page, expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm, settle


def opened(page: Page, farm: Farm, query: str) -> Locator:
    """The rows of a list with this query."""
    page.goto(f"{farm.address}/jobs?{query}")
    settle(page)
    return page.get_by_role("table", name="Jobs").locator("[aria-rowindex]")


def test_filters_are_in_the_url_and_can_be_removed(open_page: Open, farm: Farm) -> None:
    fruit = [
        {"name": name, "labels": {"fruit": name.split()[0]}, "queue": "archive"}
        for name in ("red apple", "green apple")
    ]
    # Of a workflow the jobs are counted exactly, however many others there are.
    workflow = farm.workflow("fruit", *fruit)
    page = open_page()
    rows = opened(page, farm, f"workflow={workflow}&text=apple")
    expect(rows).to_have_count(2)
    field = page.get_by_label("Filter jobs")
    field.fill("apple label:fruit=red")
    field.press("Enter")
    expect(rows).to_have_count(1)
    assert re.search(r"label=fruit%3Dred", page.url)
    page.reload()
    settle(page)
    expect(rows).to_have_count(1)
    expect(page.get_by_text("1 job", exact=True)).to_be_visible()
    page.get_by_role("button", name="Remove the filter label: fruit=red").click()
    expect(rows).to_have_count(2)
    page.go_back()
    expect(rows).to_have_count(1)
    field.fill("/^green a.+e$/")
    field.press("Enter")
    expect(page.get_by_text("No job matches")).to_be_visible()
    page.get_by_role("button", name="Remove the filter label: fruit=red").click()
    expect(rows).to_have_count(1)


def test_rows_change_where_they_are_and_new_ones_wait_until_asked_for(
    open_page: Open, farm: Farm
) -> None:
    label = {"labels": {"test": "live"}, "queue": "archive"}
    first = [farm.submit("true", name=f"row {n}", **label) for n in range(3)]
    page = open_page()
    rows = opened(page, farm, "label=test%3Dlive")
    expect(rows).to_have_count(3)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    shown = [row.split("\n")[0] for row in rows.all_inner_texts()]
    assert shown == [str(job) for job in reversed(first)]
    farm.http.post(f"/api/v1/jobs/{first[0]}/cancel")
    expect(rows.nth(2).get_by_text("canceled", exact=True)).to_be_visible()
    new = farm.submit("true", name="a new row", **label)
    announced = page.get_by_role("button", name="1 new job")
    expect(announced).to_be_visible()
    expect(rows).to_have_count(3)
    announced.click()
    expect(rows).to_have_count(4)
    expect(rows.first.get_by_role("link", name=str(new))).to_be_visible()
    expect(announced).to_be_hidden()


def test_an_action_on_all_that_match_says_first_how_many_these_are(
    open_page: Open, farm: Farm
) -> None:
    for n in range(3):
        farm.submit("true", name=f"bulk {n}", queue="archive", labels={"test": "bulk"})
    page = open_page("operator")
    rows = opened(page, farm, "label=test%3Dbulk")
    expect(rows).to_have_count(3)
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Cancel all that match").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("3 jobs", exact=True)).to_be_visible()
    dialog.get_by_role("button", name="Cancel 3 jobs").click()
    expect(page.get_by_text("Canceled 3 jobs")).to_be_visible()
    expect(rows.get_by_text("canceled", exact=True)).to_have_count(3)


def test_a_viewer_is_offered_no_action_and_sees_only_its_namespaces(
    open_page: Open, farm: Farm
) -> None:
    farm.submit("true", name="of mine", namespace="mine", labels={"test": "seen"})
    farm.submit("true", name="of others", namespace="other", labels={"test": "seen"})
    page = open_page("viewer", "mine")
    rows = opened(page, farm, "label=test%3Dseen")
    expect(rows).to_have_count(1)
    expect(rows.first).to_contain_text("of mine")
    expect(page.get_by_role("button", name="Actions")).to_have_count(0)


def test_filters_and_columns_are_kept_in_the_browser(open_page: Open, farm: Farm) -> None:
    page = open_page()
    rows = opened(page, farm, "state=failed")
    page.get_by_role("button", name="Saved").click()
    page.get_by_role("menuitem", name="Save this filter").click()
    page.get_by_label("Name", exact=True).fill("what failed")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_role("button", name="Columns").click()
    page.get_by_role("menuitemcheckbox", name="Namespace").click()
    page.keyboard.press("Escape")
    rows = opened(page, farm, "")
    expect(page.get_by_role("columnheader", name="Namespace")).to_be_visible()
    page.get_by_role("button", name="Saved").click()
    page.get_by_role("menuitemcheckbox", name="what failed").click()
    page.wait_for_url("**/jobs?state=failed")
    expect(rows.first).to_contain_text("failed")


def test_rows_are_opened_by_keyboard(open_page: Open, farm: Farm) -> None:
    number = farm.submit("true", name="by keyboard", labels={"test": "keyboard"})
    page = open_page()
    rows = opened(page, farm, "label=test%3Dkeyboard")
    rows.first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{number}")


def test_a_range_of_time_is_chosen_by_its_ends_and_kept_in_the_address(
    open_page: Open, farm: Farm
) -> None:
    label = {"labels": {"test": "range"}, "queue": "archive"}
    farm.submit("true", **label)
    page = open_page()
    rows = opened(page, farm, "label=test%3Drange")
    expect(rows).to_have_count(1)
    page.get_by_role("button", name="Any time").click()
    page.get_by_role("menuitemcheckbox", name="Between two times").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("From").fill("2020-01-02T00:00:00")
    dialog.get_by_label("Before").fill("2020-01-01T00:00:00")
    expect(dialog.get_by_text("This must be after the time above")).to_be_visible()
    expect(dialog.get_by_role("button", name="Show these jobs")).to_be_disabled()
    dialog.get_by_label("Before").fill("2020-01-03T00:00:00")
    dialog.get_by_label("Before").press("Enter")
    expect(page.get_by_text("No job matches")).to_be_visible()
    assert re.search("since=2020-01-0.*until=2020-01-0", page.url)
    page.reload()
    expect(page.get_by_text("No job matches")).to_be_visible()
    page.get_by_role("button", name=re.compile("Remove the filter created before")).click()
    expect(rows).to_have_count(1)


def test_the_filter_offers_the_names_that_the_farm_knows(open_page: Open, farm: Farm) -> None:
    farm.submit("true", queue="offered-by-name")
    page = open_page()
    opened(page, farm, "queue=archive")
    page.get_by_label("Filter jobs").fill("some text offer")
    offered = page.locator("datalist option[value='some text queue:offered-by-name']")
    expect(offered).to_have_count(1)
    page.get_by_label("Filter jobs").fill("state:fai")
    expect(page.locator("datalist option")).to_have_attribute("value", "state:failed")


def test_values_in_the_rows_narrow_the_list(open_page: Open, farm: Farm) -> None:
    for queue in ("narrow-a", "narrow-b"):
        farm.submit("true", queue=queue, labels={"test": "narrow"})
    page = open_page()
    rows = opened(page, farm, "label=test%3Dnarrow")
    expect(rows).to_have_count(2)
    rows.get_by_role("link", name="narrow-a").click()
    expect(rows).to_have_count(1)
    assert re.search("label=test%3Dnarrow.*queue=narrow-a", page.url)
    page.go_back()
    expect(rows).to_have_count(2)


def test_a_row_opens_in_a_tab_of_its_own_like_a_link(open_page: Open, farm: Farm) -> None:
    number = farm.submit("true", name="in a tab", labels={"test": "tab"})
    page = open_page()
    rows = opened(page, farm, "label=test%3Dtab")
    beside_links: Any = {"x": 150, "y": 10}
    for click in ({"modifiers": ["Control"]}, {"button": "middle"}):
        how: dict[str, Any] = {**click, "position": beside_links}
        with page.context.expect_page() as opening:
            rows.first.click(**how)
        expect(opening.value).to_have_url(f"{farm.address}/jobs/{number}")
        opening.value.close()
    assert "label=test" in page.url


def test_values_with_spaces_are_quoted_in_the_filter(open_page: Open, farm: Farm) -> None:
    farm.submit("true", name="two words", labels={"test": "quoted"}, queue="archive")
    farm.submit("true", name="two", labels={"test": "quoted"}, queue="archive")
    page = open_page()
    rows = opened(page, farm, "label=test%3Dquoted")
    expect(rows).to_have_count(2)
    field = page.get_by_label("Filter jobs")
    field.fill('name:"two words" queue:archive')
    field.press("Enter")
    expect(rows).to_have_count(1)
    expect(page.get_by_role("button", name="Remove the filter name: two words")).to_be_visible()
    field.fill("failure:execution")
    field.press("Enter")
    expect(page.get_by_text("No job matches")).to_be_visible()
    assert "failure=execution" in page.url


def test_an_action_changes_what_was_counted_and_nothing_that_came_to_match_later(
    open_page: Open, farm: Farm
) -> None:
    options = {"queue": "archive", "labels": {"test": "counted"}}
    first = [farm.submit("true", **options) for _ in range(2)]
    page = open_page("operator")
    rows = opened(page, farm, "label=test%3Dcounted")
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Cancel all that match").click()
    confirm = page.get_by_role("dialog").get_by_role("button", name="Cancel 2 jobs")
    expect(confirm).to_be_enabled()
    later = farm.submit("true", **options)
    confirm.click()
    expect(page.get_by_text("Canceled 2 jobs")).to_be_visible()
    assert [farm.wait(job)["state"] for job in first] == ["canceled"] * 2
    assert farm.http.get(f"/api/v1/jobs/{later}").json()["state"] == "queued"
    rows = opened(page, farm, "label=test%3Dcounted&state=canceled")
    expect(rows).to_have_count(2)
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Cancel all that match").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("None can be canceled: they have ended.")).to_be_visible()
    expect(dialog.get_by_role("button", name="Cancel", exact=True)).to_be_disabled()
