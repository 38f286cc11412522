"""The view of a job: live from submit to end, its log, why it waits, and what one can do to it."""

import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from playwright.sync_api import Browser, Page, Route, expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm, running_farm, sign_in
from tests.support.forms import LONG, by_form

EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"
SOON: dict[str, Any] = {"priority": "high"}  # before what fills the farm
PAINTS = (
    "printf '\\033[31mred\\033[0m \\033[38;5;208mpalette\\033[0m %s\\n' \"$1\"; "
    "printf '\\033[32mgreen begins\\nstill green\\033[0m\\n'; sleep 0.5; echo last line"
)


def show(page: Page, farm: Farm, job: int, tab: str | None = None) -> None:
    page.goto(f"{farm.address}/jobs/{job}" + (f"?tab={tab}" if tab else ""))
    page.get_by_role("heading", level=1, name=f"Job {job}").wait_for()


def call(farm: Farm, function: str, argument: object) -> int:
    """Submits a call of a function of the demo."""
    args = {"function": f"examples.demo_tasks:{function}", "args": [argument]}
    job = {"task": "python", "args": args, **SOON}
    reply = farm.http.post("/api/v1/jobs", json={"jobs": [job]})
    return int(reply.json()["ids"][0])


def badge(page: Page, state: str) -> None:
    """Waits until the heading says that the job is in this state."""
    expect(page.locator("header").get_by_text(state, exact=True)).to_be_visible()


def test_a_job_that_is_deleted_while_it_is_shown_offers_nothing_more(
    open_page: Open, farm: Farm
) -> None:
    job = farm.submit("true", name="soon gone", **SOON)
    farm.wait(job)
    page = open_page()
    show(page, farm, job)
    expect(page.get_by_role("button", name="Retry")).to_have_count(0)  # it has completed
    expect(page.get_by_role("button", name="More actions")).to_be_visible()
    assert farm.http.delete(f"/api/v1/jobs/{job}").status_code == 200
    gone = page.get_by_role("alert").filter(has_text=f"Job {job} does not exist")
    expect(gone.get_by_text("It may have been deleted")).to_be_visible()
    expect(page.get_by_role("button", name="More actions")).to_have_count(0)


def test_a_change_between_the_first_look_and_the_stream_is_not_missed(
    open_page: Open, farm: Farm
) -> None:
    job = farm.submit("true", name="soon gone", **SOON)
    farm.wait(job)
    page = open_page()
    deleted: list[int] = []

    def delete_first(route: Route) -> None:
        if not deleted:
            expect(page.get_by_role("button", name="More actions")).to_be_visible()
            deleted.append(farm.http.delete(f"/api/v1/jobs/{job}").status_code)
        route.continue_()

    page.route(re.compile(r"/api/v1/live\?"), delete_first)
    show(page, farm, job)
    expect(page.get_by_role("alert").filter(has_text=f"Job {job} does not exist")).to_be_visible()
    assert deleted == [200]


def test_a_change_that_a_broken_stream_did_not_tell_is_not_missed(
    open_page: Open, farm: Farm
) -> None:
    job = farm.submit("true", name="soon gone", **SOON)
    farm.wait(job)
    page = open_page(strict=False)  # its first stream ends at once
    deleted: list[int] = []

    def end_at_once(route: Route) -> None:
        if deleted:
            route.continue_()
            return
        expect(page.get_by_role("button", name="More actions")).to_be_visible()
        deleted.append(farm.http.delete(f"/api/v1/jobs/{job}").status_code)
        (newest,) = farm.client.events(last=1)
        body = f"id: {newest.seq}\nevent: at\ndata: {{}}\n\n"
        route.fulfill(body=body, content_type="text/event-stream")

    page.route(re.compile(r"/api/v1/live\?"), end_at_once)
    show(page, farm, job)
    expect(page.get_by_role("alert").filter(has_text=f"Job {job} does not exist")).to_be_visible()
    assert deleted == [200]


def test_a_job_is_watched_from_its_acceptance_to_its_end(open_page: Open, farm: Farm) -> None:
    job = farm.submit("bash", "-c", PAINTS, "sh", EVIL, unblock="manual", name="watched", **SOON)
    page = open_page()
    show(page, farm, job)
    badge(page, "blocked")
    expect(page.get_by_text("an operator to accept it").first).to_be_visible()
    page.get_by_role("tab", name="Log").click()
    page.get_by_role("button", name="Accept", exact=True).click()
    log = page.get_by_role("log")
    expect(log.get_by_text("last line")).to_be_visible()
    badge(page, "completed")
    # Text of a job is text: with its colours, and without anything that runs.
    expect(log.get_by_text(EVIL)).to_be_visible()
    plain = log.get_by_text("last line").evaluate("e => getComputedStyle(e).color")
    for word in ("red", "palette", "green begins", "still green"):
        colour = log.get_by_text(word, exact=True).evaluate("e => getComputedStyle(e).color")
        assert colour != plain, word
    assert log.locator("img, script").count() == 0
    assert page.title().startswith(f"Job {job}: watched")
    page.get_by_role("tab", name="Time").click()
    expect(page.get_by_text("waiting for an operator")).to_be_visible()
    page.get_by_role("tab", name="Reproduce").click()
    expect(page.get_by_text("windlass submit", exact=False).first).to_be_visible()


def test_a_log_neither_reorders_what_it_shows_nor_covers_other_lines(
    open_page: Open, farm: Farm
) -> None:
    turned, stacked = "\u202egnp.exe", "e" + "\u0301" * 300
    job = farm.submit("printf", "%s\\n", "before", turned, stacked, "after", **SOON)
    farm.wait(job)
    page = open_page()
    page.goto(f"{farm.address}/jobs/{job}?tab=log")
    log = page.get_by_role("log")
    expect(log.get_by_text("after")).to_be_visible()
    expect(log.get_by_text("\\u202egnp.exe", exact=True)).to_be_visible()
    cut = "e => getComputedStyle(e.closest('[class*=row]')).overflowY"
    assert log.get_by_text("after").evaluate(cut) == "clip"


def test_a_job_is_canceled_and_retried_as_it_was_and_changed(open_page: Open, farm: Farm) -> None:
    job = farm.submit("sleep", "60", **SOON)
    page = open_page()
    show(page, farm, job)
    page.get_by_role("button", name="Cancel job").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel job").click()
    badge(page, "canceled")
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Retry with changed arguments…").click()
    area = page.get_by_label("Arguments, as JSON")
    area.fill("{")
    page.get_by_role("dialog").get_by_role("button", name="Retry").click()
    expect(page.get_by_text("This is not JSON")).to_be_visible()
    area.fill('{"argv": ["false"]}')
    page.get_by_role("dialog").get_by_role("button", name="Retry").click()
    page.wait_for_url(lambda url: not url.endswith(f"/jobs/{job}"))
    badge(page, "failed")
    expect(page.get_by_text("Retried by hand")).to_be_visible()
    expect(page.get_by_role("link", name=str(job), exact=True)).to_be_visible()
    before = page.url
    page.get_by_role("button", name="Retry", exact=True).click()
    page.wait_for_url(lambda url: url != before)
    badge(page, "failed")
    viewer = open_page("viewer")
    viewer.goto(page.url)
    badge(viewer, "failed")
    for name in ("Retry", "More actions", "Cancel job"):
        assert viewer.get_by_role("button", name=name).count() == 0


def test_what_keeps_a_job_waiting_is_told_and_one_click_ends_it(
    open_page: Open, farm: Farm
) -> None:
    assert farm.http.post("/api/v1/queues/halted/pause").status_code == 200
    job = farm.submit("true", queue="halted", requires=["memory>=1MiB"], kind="release", **SOON)
    viewer = open_page("viewer")
    show(viewer, farm, job)
    expect(viewer.get_by_text("queue halted, which is paused").first).to_be_visible()
    expect(viewer.get_by_role("columnheader", name="memory ≥ 1 MiB")).to_be_visible()
    assert viewer.locator("td[data-met=true]").count() >= 1
    assert viewer.get_by_role("button", name="Resume the queue").count() == 0
    viewer.get_by_role("tab", name="Overview").click()
    expect(viewer.locator("dl").get_by_text("release", exact=True)).to_be_visible()
    page = open_page()
    show(page, farm, job)
    page.get_by_role("button", name="Resume the queue").click()
    badge(page, "completed")


def test_a_question_is_answered_on_the_page(open_page: Open, farm: Farm) -> None:
    job = call(farm, "approve_release", "9.9")
    page = open_page()
    show(page, farm, job)
    asked = page.get_by_role("region", name="Question")
    expect(asked.get_by_text("Release 9.9 to everyone?")).to_be_visible()
    asked.get_by_role("button", name="Yes").click()
    badge(page, "completed")
    page.get_by_role("tab", name="Overview").click()
    expect(page.get_by_text("windlass-9.9.tar.gz released")).to_be_visible()


def test_a_running_function_shows_where_it_is(open_page: Open, farm: Farm) -> None:
    job = call(farm, "train", 60)
    page = open_page("viewer")
    show(page, farm, job)
    badge(page, "running")
    page.get_by_role("tab", name="Overview").click()
    page.get_by_role("button", name="Show the stack").click()
    expect(page.get_by_text(re.compile(r"demo_tasks\.py:\d+ in train"))).to_be_visible()
    expect(page.get_by_text(re.compile(r"of 60 \(\d+ %\), loss"))).to_be_visible()
    farm.http.post(f"/api/v1/jobs/{job}/cancel")


LINES = by_form(1_000_000, 30_000_000)
OPENS_MS = 1_000


def test_a_huge_log_opens_at_once_and_is_searched(
    open_page: Open, farm: Farm, tmp_path: Path
) -> None:
    if LONG:
        with running_farm(tmp_path, "--set", "log_limit=0") as roomy:
            page = open_page(None)
            reply = page.context.request.post(
                f"{roomy.address}/auth/session", data={"token": roomy.token},
                headers={"Origin": roomy.address},
            )  # fmt: skip
            assert reply.status == 201
            read_huge_log(page, roomy, 1_000)
    else:
        read_huge_log(open_page(), farm, 30)


def read_huge_log(page: Page, farm: Farm, megabytes: int) -> None:
    script = f'seq {LINES} | sed "s/.*/line & of a rather long log/"'
    job = farm.submit("sh", "-c", script, **SOON)
    while farm.http.get(f"/api/v1/jobs/{job}").json()["log"]["state"] != "committed":
        farm.http.get(f"/api/v1/jobs/{job}/wait", params={"timeout": 20})
    assert farm.http.get(f"/api/v1/jobs/{job}").json()["log"]["bytes"] > megabytes * 1_000_000
    show(page, farm, job)  # the code of the page is loaded
    shown = begun = page.evaluate("performance.now()")  # since the page was asked for
    page.get_by_role("tab", name="Log").click()
    log = page.get_by_role("log")
    expect(log.get_by_text(f"line {LINES} of")).to_be_visible()
    page.get_by_role("button", name="To the start of the log").click()
    expect(log.get_by_text("line 1 of")).to_be_visible()
    # Its end, and its start. A busy machine takes longer for every page.
    assert page.evaluate("performance.now()") - begun < 2 * OPENS_MS + 2 * shown
    middle = LINES // 2
    search = page.get_by_role("search", name="Search the log")
    search.get_by_role("searchbox").fill(f"line {middle} of")
    search.get_by_role("button", name="Find").click()
    expect(log.locator(f'[data-line="{middle}"][data-marked]')).to_contain_text(f"line {middle} of")
    assert f"line={middle}" in page.url
    log.hover()
    page.mouse.wheel(0, 2_000)
    expect(log.get_by_text(f"line {middle + 100} of")).to_be_visible()


def test_of_many_attempts_the_first_and_the_newest_are_shown_until_somebody_asks(
    open_page: Open, farm: Farm
) -> None:
    retried = {"retries": 20, "retry_on": ["execution"], "backoff": {"initial": 0.01, "max": 0.02}}
    job = farm.submit("false", **retried, **SOON)
    while farm.http.get(f"/api/v1/jobs/{job}/wait").json()["finished_at"] is None:
        pass
    page = open_page()
    show(page, farm, job)
    names = page.get_by_role("button", name=re.compile("^Log of attempt"))
    expect(names).to_have_text(["1", "2", *map(str, range(14, 22))])
    page.get_by_role("button", name="Show 11 attempts between").click()
    expect(names).to_have_count(21)


def test_times_in_what_the_server_tells_are_written_for_people(open_page: Open, farm: Farm) -> None:
    job = call(farm, "approve_release", "5.5")
    page = open_page()
    show(page, farm, job)
    badge(page, "suspended")
    summary = page.get_by_text("waits for an answer").first
    expect(summary.locator("time")).to_have_count(2)
    expect(summary).not_to_contain_text(re.compile(r"\dT\d"))
    expect(page.get_by_text("Answer its question")).to_be_visible()
    farm.http.post(f"/api/v1/jobs/{job}/cancel")


def test_times_of_a_log_are_those_of_the_person(browser: Browser, farm: Farm) -> None:
    job = farm.submit("echo", "hello", **SOON)
    ended = datetime.fromisoformat(farm.wait(job)["finished_at"])
    context = browser.new_context(timezone_id="Asia/Tokyo", locale="en-US")
    page = context.new_page()
    sign_in(page, farm, farm.token)
    page.goto(f"{farm.address}/jobs/{job}?tab=log")
    page.get_by_label("Times").check()
    shown = page.get_by_role("log").get_by_role("time")
    expect(shown).to_have_text(re.compile(r"^\d\d:\d\d:\d\d\.\d{3}$"))
    there = ended.astimezone(ZoneInfo("Asia/Tokyo"))
    hours = {there.strftime("%H"), (there - timedelta(minutes=1)).strftime("%H")}
    assert shown.inner_text()[:2] in hours
    context.close()


def test_a_question_is_offered_to_those_who_may_answer_it(open_page: Open, farm: Farm) -> None:
    job = call(farm, "approve_release", "3.0")
    page = open_page()
    show(page, farm, job)
    question = page.get_by_role("region", name="Question")
    expect(question.get_by_role("button", name="No")).to_be_visible()
    other = open_page("submitter")
    for path in (f"/jobs/{job}", "/questions"):
        other.goto(f"{farm.address}{path}")
        expect(other.get_by_text("You may not answer it.").first).to_be_visible()
        expect(other.get_by_role("button", name="No", exact=True)).to_have_count(0)
    question.get_by_role("button", name="No").click()
    assert farm.wait(job)["result"].endswith("kept back")


def test_a_failed_program_shows_the_end_of_its_log_and_what_its_exit_code_means(
    open_page: Open, farm: Farm
) -> None:
    script = "for n in $(seq 30); do echo line $n; done; exit 139"
    job = farm.submit("sh", "-c", script, retries=0)
    farm.wait(job)
    page = open_page("viewer")
    page.goto(f"{farm.address}/jobs/{job}")
    lines = page.locator("#content pre > div")
    expect(lines).to_have_count(20)
    expect(lines.last).to_have_text("line 30")
    expect(page.get_by_text("Exit code 139 means SIGSEGV")).to_be_visible()
    new = farm.http.post(f"/api/v1/jobs/{job}/retry", json={}).json()
    page.reload()
    expect(page.get_by_text(re.compile("It was retried: job"))).to_be_visible()
    page.get_by_role("link", name=f"job {new['id']}").click()
    page.wait_for_url(f"**/jobs/{new['id']}")
