"""The overview: what needs attention, numbers that lead to their jobs, earlier times, questions."""

import re
from datetime import datetime, timedelta
from urllib.parse import quote

from playwright.sync_api import Page, expect

from examples.demo_tasks import approve_release
from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm, settle


def show_whole_list(page: Page) -> None:
    """Shows all that needs attention: other tests make jobs fail."""
    settle(page)
    more = page.get_by_role("button", name=re.compile("^Show [0-9]+ more$"))
    if more.is_visible():
        more.click()


def test_what_needs_attention_has_its_reason_and_a_button_that_helps(
    open_page: Open, farm: Farm
) -> None:
    farm.http.post("/api/v1/queues/held-back/pause")
    farm.submit("true", queue="held-back")
    page = open_page()
    page.goto(farm.address)
    show_whole_list(page)
    item = page.get_by_role("listitem").filter(has_text="Queue held-back is paused")
    expect(item.get_by_text("1 job waits in it.")).to_be_visible()
    item.get_by_role("button", name="Resume it").click()
    expect(item).to_have_count(0)
    assert not farm.client.queues.show("held-back").paused


def test_failures_with_one_cause_are_retried_together_or_silenced(
    open_page: Open, farm: Farm
) -> None:
    jobs = [farm.submit("false", name=f"burst-{n}", queue="bursts") for n in range(3)]
    for job in [*jobs, farm.submit("false", name="lonely", queue="bursts")]:
        farm.wait(job)
    page = open_page()
    page.goto(farm.address)
    show_whole_list(page)
    lonely = page.get_by_role("listitem").filter(has_text=re.compile(r"\(lonely\) failed"))
    lonely.get_by_role("button", name="Silence").click()
    page.get_by_role("menuitem", name="For a week").click()
    expect(lonely).to_have_count(0)
    page.reload()
    show_whole_list(page)
    burst = page.get_by_role("listitem").filter(has_text="3 jobs (burst-…) failed")
    expect(burst.get_by_text("Exit code 1")).to_be_visible()
    expect(lonely).to_have_count(0)
    page.get_by_role("button", name="Show again").click()
    expect(lonely).to_be_visible()
    burst.get_by_role("link", name="3 jobs (burst-…) failed").click()
    expect(page.get_by_text("these 3 jobs")).to_be_visible()
    page.go_back()
    show_whole_list(page)
    burst.get_by_role("button", name="Retry these").click()
    expect(page.get_by_text("Retry these: 3 jobs")).to_be_visible()
    successors = [farm.http.get(f"/api/v1/jobs/{job}").json()["superseded_by"] for job in jobs]
    assert None not in successors


def test_what_no_request_helps_against_leads_to_where_a_person_goes_on(
    open_page: Open, farm: Farm
) -> None:
    job = farm.submit("true", requires=["memory>=99TiB"], queue="too-much")
    page = open_page()
    page.goto(farm.address)
    show_whole_list(page)
    item = page.get_by_role("listitem").filter(has_text="in queue too-much that no worker can run")
    item.get_by_role("link", name="See why").click()
    page.wait_for_url(re.compile(f"/jobs/{job}"))
    expect(page.get_by_text("Workers and what it asks of them")).to_be_visible()
    farm.http.post(f"/api/v1/jobs/{job}/cancel")


def test_a_viewer_is_told_and_offered_nothing(open_page: Open, farm: Farm) -> None:
    page = open_page("viewer")
    page.goto(farm.address)
    show_whole_list(page)
    item = page.get_by_role("listitem").filter(has_text="Queue archive is paused")
    expect(item).to_be_visible()
    expect(item.get_by_role("button")).to_have_text(["Silence"])  # which changes this browser only


def test_numbers_lead_to_the_jobs_behind_them(open_page: Open, farm: Farm) -> None:
    page = open_page()
    page.goto(farm.address)
    settle(page)
    page.get_by_role("group", name="blocked").get_by_role("link").click()
    page.wait_for_url(re.compile("/jobs.*state=blocked"))
    settle(page)
    rows = page.get_by_role("table", name="Jobs").locator("[aria-rowindex]")
    waiting = rows.filter(has_text=re.compile("blocked|suspended"))  # some may have gone on since
    expect(waiting.first).to_be_visible()


def test_a_number_of_the_range_and_its_list_count_the_same_jobs(
    open_page: Open, farm: Farm
) -> None:
    """Also while jobs go on: the list ends where the server has counted up to."""
    farm.wait_for_figures()
    page = open_page()
    page.goto(farm.address)
    settle(page)
    number = page.get_by_role("group", name="failed").get_by_role("link")
    expect(number).not_to_have_text("0")
    farm.wait(farm.submit("false", priority="high"))  # it is counted half a minute from now
    page.reload()
    settle(page)
    said = int(number.inner_text().replace(",", ""))
    number.click()
    page.wait_for_url(re.compile("/jobs.*state=failed"))
    expect(page.locator("header").get_by_text(re.compile(r"^\d+ jobs?$"))).to_have_text(
        f"{said} job" if said == 1 else f"{said} jobs"
    )


def test_percentiles_have_their_usual_names_and_explain_them(open_page: Open, farm: Farm) -> None:
    farm.wait_for_figures()
    page = open_page()
    page.goto(farm.address)
    settle(page)
    heads = page.get_by_role("table", name="Queues").get_by_role("columnheader")
    for name, words in [("Wait p90", "90 % of the jobs waited"), ("Run p50", "Half of the jobs")]:
        head = heads.filter(has_text=re.compile(f"^{name}$"))
        expect(head.get_by_title(words)).to_be_visible()
    chart = page.get_by_role("img", name=re.compile("^Run time"))
    expect(chart.locator(".u-label").filter(has_text=re.compile("^p[59]0$"))).to_have_count(2)


def test_a_point_of_a_chart_leads_to_the_jobs_behind_it(open_page: Open, farm: Farm) -> None:
    page = open_page()
    page.goto(farm.address)
    settle(page)
    chart = page.get_by_role("img", name=re.compile("^Throughput"))
    plot = chart.locator(".u-over")
    box = plot.bounding_box()
    assert box is not None
    plot.click(position={"x": box["width"] - 4, "y": box["height"] / 2})
    page.wait_for_url(re.compile(r"/jobs\?.*state=completed.*since=.*until="))


def test_namespaces_and_the_overview_are_visited_in_turns(open_page: Open, farm: Farm) -> None:
    farm.submit("true", namespace="second", queue="archive")
    page = open_page()
    page.goto(farm.address)
    settle(page)
    views = page.get_by_role("navigation", name="Views")
    expect(page.get_by_label("Namespace").locator("option")).not_to_have_count(0)
    views.get_by_role("link", name="Namespaces").click()
    expect(page.get_by_role("row", name=re.compile("second"))).to_be_visible()
    views.get_by_role("link", name="Overview").click()
    expect(page.get_by_label("Namespace").locator("option[value=second]")).to_have_count(1)


def test_the_page_travels_to_an_earlier_time_and_changes_nothing_there(
    open_page: Open, farm: Farm
) -> None:
    label = {"labels": {"test": "travel"}, "queue": "archive"}
    old = farm.submit("true", name="was there", **label)
    before = str(farm.client.job(old).info().created_at)
    new = farm.submit("true", name="came later", **label)
    farm.http.post(f"/api/v1/jobs/{old}/cancel")
    page = open_page()
    page.goto(f"{farm.address}/jobs?label=test%3Dtravel&as_of={quote(before)}")
    settle(page)
    rows = page.get_by_role("table", name="Jobs").locator("[aria-rowindex]")
    expect(rows).to_have_count(1)
    expect(rows.first.get_by_text("queued", exact=True)).to_be_visible()
    expect(page.get_by_role("status").filter(has_text="As of")).to_be_visible()
    expect(page.get_by_role("button", name="Actions")).to_have_count(0)
    rows.first.get_by_role("link").first.click()
    page.wait_for_url(re.compile(rf"/jobs/{old}\?.*as_of="))
    settle(page)
    expect(page.get_by_role("button", name="Cancel job")).to_have_count(0)
    expect(page.locator("#content").get_by_text("queued", exact=True).first).to_be_visible()
    tabs = page.get_by_role("tablist", name="Parts of the job").get_by_role("tab")
    expect(tabs).to_have_text(["Overview", "History"])  # the others show the present
    page.get_by_role("button", name="Back to now").click()
    expect(page.get_by_text("canceled", exact=True).first).to_be_visible()
    assert farm.client.job(new).info().state == "queued"


def test_what_ran_at_an_earlier_time_took_so_long_then(open_page: Open, farm: Farm) -> None:
    job = farm.submit("sleep", "60", priority=90)
    while (shown := farm.http.get(f"/api/v1/jobs/{job}").json())["started_at"] is None:
        farm.http.get(f"/api/v1/jobs/{job}/wait", params={"timeout": 0.2})
    farm.wait(farm.submit("sleep", "2", priority=90))
    then = datetime.fromisoformat(shown["started_at"]) + timedelta(seconds=1)
    page = open_page()
    page.goto(f"{farm.address}/jobs?as_of={quote(then.isoformat())}&text={job}")
    row = page.get_by_role("table", name="Jobs").locator("[aria-rowindex]")
    expect(row.get_by_role("cell", name="1 s", exact=True)).to_be_visible()
    farm.http.post(f"/api/v1/jobs/{job}/cancel")


def test_a_time_that_cannot_be_shown_is_refused_in_words(open_page: Open, farm: Farm) -> None:
    page = open_page()
    for path in ("/", "/jobs", "/workers"):
        page.goto(f"{farm.address}{path}?as_of=2999-01-01T00:00:00Z")
        refusal = re.compile("expected as_of to be a time in the past", re.IGNORECASE)
        expect(page.get_by_text(refusal).first).to_be_visible()
        expect(page.get_by_role("button", name="Back to now")).to_be_visible()


def test_a_time_that_says_how_long_ago_becomes_the_moment_that_it_means(
    open_page: Open, farm: Farm
) -> None:
    farm.wait(farm.submit("true", priority="high"))
    page = open_page()
    page.goto(f"{farm.address}/jobs?as_of=1s")
    settle(page)
    banner = page.get_by_role("status").filter(has_text="As of")
    expect(banner).to_have_text(re.compile(r"As of \w+ \d+, \d{4}"))
    page.wait_for_url(re.compile(r"as_of=20\d\d-"))
    expect(page.get_by_label("Time to show")).not_to_have_value("")


def test_lists_without_a_past_show_the_present_while_the_page_travels(
    open_page: Open, farm: Farm
) -> None:
    then = str(farm.client.job(1).info().created_at)
    page = open_page()
    for path in ("/workflows", "/audit"):
        page.goto(f"{farm.address}{path}?as_of={quote(then)}")
        settle(page)
        expect(page.get_by_text("this view shows the present")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)
        expect(page.locator("[aria-rowindex]").first).to_be_visible()


def test_a_question_is_answered_on_the_page(open_page: Open, farm: Farm) -> None:
    asking = farm.client.submit(approve_release.options(name="a question"), "7.7")
    page = open_page("operator")
    page.goto(f"{farm.address}/questions")
    question = page.get_by_role("listitem").filter(has_text="Release 7.7 to everyone?")
    question.get_by_role("button", name="Yes").click()
    assert asking.result(timeout=60) == "windlass-7.7.tar.gz released"
    expect(question).to_have_count(0)


def test_the_legend_of_a_chart_tells_the_newest_values_until_somebody_points_at_others(
    open_page: Open, farm: Farm
) -> None:
    farm.wait_for_figures()
    page = open_page()
    page.goto(farm.address)
    settle(page)
    chart = page.get_by_role("img", name="Jobs", exact=True)
    values = chart.locator(".u-legend .u-value")
    expect(values.first).to_have_text(re.compile(r"\d{4}|\d:\d"))  # the time of the newest
    expect(values.nth(1)).to_have_text(re.compile(r"^\d"))
