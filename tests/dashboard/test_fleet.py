"""The views of the fleet: workers, pools, queues, tokens, the audit log, fuzzing."""

import re
from typing import Any

from playwright.sync_api import APIResponse, Page, Route, expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm, settle
from tests.dashboard.fuzz_bucket import INPUT, KEY


def visit(page: Page, farm: Farm, path: str) -> Page:
    page.goto(farm.address + path)
    settle(page)
    return page


def confirm(page: Page, words: str) -> None:
    page.get_by_role("dialog").get_by_role("button", name=words, exact=True).click()


def test_a_worker_that_waits_is_found_by_its_state_approved_and_removed(
    open_page: Open, farm: Farm
) -> None:
    nobody = {"Authorization": ""}
    farm.http.post("/api/v1/workers/enrol", json={"name": "newcomer"}, headers=nobody)
    page = visit(open_page(), farm, "/workers")
    page.get_by_role("link", name=re.compile("1 pending approval")).click()
    page.get_by_role("link", name=re.compile("newcomer")).click()
    settle(page)
    page.get_by_role("button", name="Approve").click()
    expect(page.get_by_role("button", name="Drain")).to_be_visible()
    page.get_by_role("button", name="Drain").click()
    expect(page.get_by_role("button", name="Enable")).to_be_visible()
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Remove").click()
    confirm(page, "Remove")
    page.wait_for_url("**/workers")
    names = [one["name"] for one in farm.http.get("/api/v1/fleet").json()["workers"]]
    assert "newcomer" not in names


def test_an_action_on_all_workers_that_match_tells_how_many_and_changes_only_those(
    open_page: Open, farm: Farm
) -> None:
    nobody = {"Authorization": ""}
    for name in ("rack-7-a", "rack-7-b", "rack-8-a"):
        farm.http.post("/api/v1/workers/enrol", json={"name": name}, headers=nobody)

    def states() -> dict[str, str]:
        found = farm.http.get("/api/v1/fleet", params={"name": "rack-"}).json()["workers"]
        return {one["name"]: one["status"] for one in found}

    page = visit(open_page(), farm, "/workers?name=rack-7")
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Drain all that match").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_text("None of the 2 workers that match")).to_be_visible()
    expect(dialog.get_by_role("button", name="Drain 0 workers")).to_be_disabled()
    page.keyboard.press("Escape")
    page.get_by_role("button", name="Actions").click()
    page.get_by_role("menuitem", name="Approve all that match").click()
    expect(dialog.get_by_text("2 workers: rack-7-a, rack-7-b.")).to_be_visible()
    confirm(page, "Approve 2 workers")
    expect(page.get_by_text("Approved 2 workers")).to_be_visible()
    now = states()
    assert now["rack-8-a"] == "pending_approval"
    assert "pending_approval" not in {now["rack-7-a"], now["rack-7-b"]}
    operator = visit(open_page("operator", "team"), farm, "/workers")
    expect(operator.get_by_role("button", name="Actions")).to_have_count(0)
    for one in farm.http.get("/api/v1/fleet", params={"name": "rack-"}).json()["workers"]:
        farm.http.delete(f"/api/v1/workers/{one['id']}", params={"force": True})


def test_a_worker_shows_what_it_ran_what_it_offers_and_why_it_is_idle(
    open_page: Open, farm: Farm, places: dict[str, Any]
) -> None:
    farm.submit("true", queue="gpu-only", requires=["gpus>=64"])
    job = places["job"]
    worker = farm.http.get(f"/api/v1/jobs/{job}").json()["worker"]
    page = visit(open_page(), farm, f"/workers/{worker}?range=15m")
    expect(page.get_by_role("group", name=re.compile("attempts between"))).to_be_visible()
    assert page.locator(f"a[href$='/jobs/{job}']").count() >= 1
    work = page.locator("section", has_text="What it could run now")
    expect(work.get_by_text("needs gpus ≥ 64")).to_be_visible()
    page.get_by_label("Find in the metadata").fill("hostname")
    expect(page.get_by_role("row", name=re.compile("system:hostname"))).to_be_visible()
    assert "find=hostname" in page.url
    viewer = visit(open_page("viewer"), farm, f"/workers/{worker}")
    expect(viewer.get_by_role("button", name="Drain")).to_have_count(0)


def test_a_code_and_the_command_to_paste_enrol_a_worker(open_page: Open, farm: Farm) -> None:
    page = visit(open_page(), farm, "/workers")
    page.get_by_role("button", name="Enrol a worker").click()
    page.get_by_label("Name", exact=True).last.fill("far away")
    page.get_by_role("button", name="Make a code").click()
    command = page.get_by_role("dialog").locator("pre").inner_text()
    found = re.fullmatch(
        rf"windlass worker --server {farm.address} --name 'far away' --code (\S+)", command
    )
    assert found is not None, command
    body = {"name": "far away", "code": found[1]}
    assert farm.http.post("/api/v1/workers/enrol", json=body).json()["status"] == "online"
    number = farm.http.get("/api/v1/fleet/far away").json()["id"]
    farm.http.delete(f"/api/v1/workers/{number}", params={"force": True})
    operator = visit(open_page("operator", "team"), farm, "/workers")
    expect(operator.get_by_role("button", name="Enrol a worker")).to_have_count(0)


def test_very_many_queues_stay_usable(open_page: Open, farm: Farm) -> None:
    some = farm.http.get("/api/v1/queues").json()["queues"][0]
    many = [{**some, "name": f"q{n}", "depth": n} for n in range(5_000)]
    page = open_page()
    page.route("**/api/v1/queues", lambda route: route.fulfill(json={"queues": many}))
    page.goto(f"{farm.address}/queues?sort=-depth")
    table = page.get_by_role("table", name="Queues")
    expect(table.get_by_role("link", name="q4999", exact=True)).to_be_visible()
    assert table.get_by_role("row").count() < 200  # The others are drawn when they come in sight.
    page.get_by_label("Name").fill("q123")
    expect(table.get_by_role("link", name="q123", exact=True)).to_be_visible()
    expect(table.get_by_role("link", name="q4999", exact=True)).to_have_count(0)


def test_queues_are_paused_limited_and_resumed(open_page: Open, farm: Farm) -> None:
    farm.submit("true", queue="paused-one")
    page = visit(open_page(), farm, "/queues?name=paused")
    page.get_by_role("button", name="Pause paused-one").click()
    confirm(page, "Pause")
    row = page.get_by_role("row", name=re.compile("paused-one"))
    expect(row.get_by_role("button", name="Resume paused-one")).to_be_visible()
    row.get_by_role("button", name="Limits of paused-one").click()
    page.get_by_label("Jobs that run at once").fill("3")
    confirm(page, "Set the limits")
    expect(row.get_by_role("cell", name="3 at once", exact=True)).to_be_visible()
    row.get_by_role("button", name="Resume paused-one").click()
    expect(row.get_by_role("button", name="Pause paused-one")).to_be_visible()
    submitter = visit(open_page("submitter"), farm, "/queues?name=paused")
    expect(submitter.get_by_role("row", name=re.compile("paused-one"))).to_be_visible()
    expect(submitter.get_by_role("button", name=re.compile("Pause"))).to_have_count(0)


def test_queues_are_sorted_and_narrowed_by_what_they_hold_in_the_address(
    open_page: Open, farm: Farm
) -> None:
    farm.http.post("/api/v1/queues/order-b/pause")
    farm.wait(farm.submit("true", queue="order-a", priority="high"))
    farm.submit("true", queue="order-b")
    page = visit(open_page(), farm, "/queues?name=order-")
    names = page.get_by_role("table", name="Queues").locator("[aria-rowindex] a[href*=order-]")
    expect(names.first).to_have_text("order-a")
    page.get_by_role("button", name="Queued").click()
    page.wait_for_url(re.compile("sort=-depth"))
    expect(names.first).to_have_text("order-b")
    page.get_by_label("Only with jobs, or paused").check()
    rows = page.get_by_role("table", name="Queues").locator("[role=row][aria-rowindex]")
    expect(rows).to_have_count(1)
    page.reload()
    expect(rows).to_have_count(1)
    phone = visit(open_page(phone=True), farm, "/queues?name=order-b")
    resume = phone.get_by_role("button", name="Resume order-b")
    expect(resume).to_be_in_viewport()
    resume.click()
    expect(phone.get_by_role("button", name="Pause order-b")).to_be_visible()


def test_a_token_is_shown_once_and_ends_when_it_is_revoked(open_page: Open, farm: Farm) -> None:
    page = visit(open_page(), farm, "/tokens")
    page.get_by_role("button", name="Create a token").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("for a robot")
    dialog.get_by_label("Namespaces").fill("team")
    dialog.get_by_role("button", name="Create").click()
    secret = dialog.locator("pre").inner_text()
    confirm(page, "I have copied it")
    assert secret not in page.content()
    headers = {"Authorization": f"Bearer {secret}"}
    who = farm.http.get("/api/v1/whoami", headers=headers).json()
    assert (who["role"], who["namespaces"]) == ("viewer", ["team"])
    page.get_by_role("button", name="Revoke for a robot").click()
    confirm(page, "Revoke")
    expect(page.get_by_role("button", name="Revoke for a robot")).to_have_count(0)
    assert farm.http.get("/api/v1/whoami", headers=headers).status_code == 401


def test_the_audit_log_is_narrowed_by_what_it_shows(open_page: Open, farm: Farm) -> None:
    viewer = {"Authorization": f"Bearer {farm.token_of('viewer')}"}
    farm.http.post("/api/v1/queues/x/pause", headers=viewer)
    page = open_page()

    def refused() -> int:
        visit(page, farm, "/audit?refused=true")
        return page.get_by_role("link", name="viewer of tests", exact=True).count()

    for _ in range(20):  # It is written in the background.
        if refused():
            break
    page.get_by_role("link", name="viewer of tests", exact=True).first.click()
    expect(page.get_by_label("Who")).to_have_value("viewer of tests")
    assert "actor=viewer" in page.url


def test_a_finding_shows_its_report_as_text_and_its_input_is_saved(
    open_page: Open, farm: Farm
) -> None:
    page = visit(open_page(), farm, "/fuzzing")
    expect(page.get_by_text("/srv/toy.git, main, release/*")).to_be_visible()
    expect(page.get_by_role("cell", name="main fixed, release/1 alive")).to_be_visible()
    page.get_by_role("link", name=KEY).click()
    expect(page.get_by_text("alive since dddddddddddd", exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="assertion in <img src=x>")).to_be_visible()
    with page.expect_download() as saved:
        page.get_by_role("link", name=re.compile(r"smt2")).click()
    assert saved.value.path().read_bytes() == INPUT
    assert page.title() != "owned"
    page.get_by_role("tab", name=re.compile("Schedule")).click()
    expect(page.get_by_role("row", name=re.compile("dddddddddddd 7"))).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("1 watched 1"))).to_be_visible()
    expect(
        page.get_by_role("row", name=re.compile("address .*100 % 1 new finding"))
    ).to_be_visible()
    expect(page.get_by_role("row", name="plain none 0 % its build failed")).to_be_visible()
    page.get_by_role("tab", name="Coverage").click()
    expect(page.get_by_text("3 functions reached by 1 test,")).to_be_visible()
    limited = visit(open_page("viewer", "team"), farm, "/fuzzing")
    expect(limited.get_by_text("Your token may not read fuzzing")).to_be_visible()


def test_a_pool_shows_its_machines_and_its_plan(open_page: Open, farm: Farm) -> None:
    page = visit(open_page(), farm, "/pools")
    answers: list[APIResponse] = []

    def answer_once(route: Route) -> None:
        """Keeps the first answer with reasons: the pool goes on while we look at the page."""
        answer = answers[0] if answers else route.fetch()
        if not answers and answer.json()["reasons"]:
            answers.append(answer)
        route.fulfill(response=answer)

    page.route("**/api/v1/pools/spot/history?*", answer_once)
    page.get_by_role("link", name="spot").first.click()
    settle(page)
    expect(page.get_by_text("target latency")).to_be_visible()
    expect(page.get_by_text("Pool spot was created")).to_be_visible()
    for chart in ("Machines", "Latency against its target", "Machine time this month"):
        expect(page.get_by_role("img", name=chart, exact=True)).to_be_visible()
    expect(page.get_by_role("heading", name="Why", exact=True)).to_be_visible()
    for reason in answers[0].json()["reasons"]:
        item = page.get_by_role("listitem").filter(has_text=reason["reason"][1:])
        expect(item.first).to_be_visible()
    viewer = visit(open_page("viewer"), farm, "/pools/spot")
    expect(viewer.get_by_role("button", name="Delete")).to_have_count(0)
