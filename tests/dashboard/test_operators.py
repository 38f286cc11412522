"""What operators look for: who did what and when, how slots went, rates, what a worker runs."""

import re
from datetime import datetime
from urllib.parse import parse_qs, urlsplit

from playwright.sync_api import expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm
from tests.dashboard.test_fleet import visit


def test_the_audit_log_says_in_words_what_was_done_and_is_narrowed_by_time(
    open_page: Open, farm: Farm
) -> None:
    job = farm.submit("sleep", "600", queue="audited", requires=["memory>=8TiB"])
    farm.http.post(f"/api/v1/jobs/{job}/cancel")
    page = open_page()
    about = f"job {job}, task shell, queue audited"
    for _ in range(20):  # It is written in the background.
        visit(page, farm, "/audit")
        if page.get_by_role("link", name=about).count():
            break
    row = page.get_by_role("row").filter(has_text=about)
    expect(row).to_contain_text("Cancels one job")
    expect(row).to_contain_text("done")
    row.get_by_role("link", name="Cancels one job").click()
    page.wait_for_url(re.compile("action=POST"))
    expect(page.get_by_text("what: Cancels one job")).to_be_visible()
    page.get_by_label("Until").fill("2020-01-02T03:04")
    expect(page.get_by_text("Nothing was recorded that matches")).to_be_visible()
    assert "until=2020-01-0" in page.url


def test_the_history_of_slots_shows_how_each_run_ended(open_page: Open, farm: Farm) -> None:
    failing = {"task": "shell", "args": {"argv": ["false"]}, "priority": "high"}
    plan = {"cron": "0 3 * * *", "jobs": [failing]}
    assert farm.http.put("/api/v1/schedules/fails", json=plan).is_success
    run = farm.http.post("/api/v1/schedules/fails/run").json()
    farm.http.get(f"/api/v1/workflows/{run['workflow']}/wait", params={"timeout": 20})
    page = visit(open_page(), farm, "/schedules?show=fails")
    slots = page.get_by_role("table", name="History of slots")
    expect(slots.get_by_role("row", name=re.compile("by hand"))).to_contain_text("failed")
    farm.http.delete("/api/v1/schedules/fails")


def test_a_queue_shows_the_rate_that_its_jobs_wait_for_and_what_it_did(
    open_page: Open, farm: Farm
) -> None:
    rate = {"key": "letters", "max": 1, "per": "1h"}
    first, second = (
        farm.submit("true", queue="letters", rate=rate, priority="high") for _ in range(2)
    )
    farm.http.post("/api/v1/jobs/wait", json={"jobs": [first, second], "timeout": 20})
    page = visit(open_page(), farm, "/queues?name=letters")
    row = page.get_by_role("row", name=re.compile("letters"))
    expect(row).to_contain_text("letters: 1 of 1 in 1 h, next in ")
    limited = visit(open_page("viewer", "team"), farm, "/queues")
    expect(limited.get_by_role("row", name=re.compile("letters"))).to_have_count(0)
    for job in (first, second):
        farm.http.post(f"/api/v1/jobs/{job}/cancel")


def test_a_worker_names_what_it_runs_and_says_what_colours_mean(
    open_page: Open, farm: Farm
) -> None:
    job = farm.submit("sleep", "60", name="a long nap", priority="high")
    worker = None
    for _ in range(100):
        shown = farm.http.get(f"/api/v1/jobs/{job}/wait", params={"timeout": 0.2}).json()
        if shown["state"] == "running":
            worker = shown["worker"]
            break
    assert worker is not None
    page = visit(open_page(), farm, f"/workers/{worker}")
    now = page.locator("section", has_text="Jobs now")
    expect(now.get_by_text("a long nap")).to_be_visible()
    expect(page.get_by_role("list", name="Colours")).to_contain_text("running")
    farm.http.post(f"/api/v1/jobs/{job}/cancel")


def test_a_young_pool_is_shown_for_an_hour_and_nothing_is_revoked_in_the_past(
    open_page: Open, farm: Farm
) -> None:
    page = visit(open_page(), farm, "/pools/spot")
    expect(page.get_by_label("Time", exact=True)).to_have_value("1h")
    visit(page, farm, "/tokens")
    expect(page.get_by_role("button", name=re.compile("^Revoke ")).first).to_be_visible()
    visit(page, farm, "/tokens?as_of=1s")
    expect(page.get_by_role("table", name="Tokens")).to_be_visible()
    expect(page.get_by_role("button", name=re.compile("^Revoke "))).to_have_count(0)


def test_a_build_that_failed_counts_and_says_what_shows_its_log(
    open_page: Open, farm: Farm
) -> None:
    page = visit(open_page(), farm, "/fuzzing?tab=builds")
    listed = page.get_by_role("table", name="Queue and builds").get_by_role("row").count() - 1
    expect(page.get_by_role("tab", name=f"Queue and builds {listed}")).to_be_visible()
    row = page.get_by_role("row", name=re.compile("failed"))
    expect(row).to_contain_text("windlass fuzz builder log toy ")


def test_the_slider_is_fine_near_now_and_reaches_back_a_month(open_page: Open, farm: Farm) -> None:
    page = visit(open_page(), farm, "/workers")
    page.get_by_role("button", name=re.compile("show an earlier time")).click()
    slider = page.get_by_role("slider", name="How long ago")
    expect(slider).to_have_attribute("aria-valuetext", "now")
    slider.focus()
    slider.press("ArrowLeft")  # once: a second one may come after the page has moved
    page.wait_for_url(re.compile("as_of="))
    at = datetime.fromisoformat(parse_qs(urlsplit(page.url).query)["as_of"][0])
    back = page.evaluate("Date.now()") / 1000 - at.timestamp()
    assert 60 <= back < 180  # it shows whole minutes
    slider.press("Home")
    expect(slider).to_have_attribute("aria-valuetext", "30 d ago")
    expect(page.get_by_role("heading", level=1, name="Workers")).to_be_visible()
