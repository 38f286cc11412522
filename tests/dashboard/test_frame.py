"""The frame around all views: sign-in, keys, theme, roles, width, and the policy of the page."""

import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Page, expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm, settle

EVIL = "<img src=x onerror=\"document.title='owned'\"><script>document.title='owned'</script>"


def heading(page: Page) -> Any:
    return page.locator("#content h1")


def test_a_person_signs_in_with_a_token_and_is_led_back(open_page: Open, farm: Farm) -> None:
    page = open_page(None)
    page.goto(f"{farm.address}/workers")
    page.wait_for_url("**/sign-in*")
    page.get_by_label("Token").fill("wl_wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("This token is not valid")).to_be_visible()
    page.get_by_label("Token").fill(farm.token)
    page.get_by_label("Token").press("Enter")
    page.wait_for_url("**/workers")
    expect(heading(page)).to_have_text(re.compile("Workers"))
    assert page.evaluate("document.cookie") == ""
    assert farm.token not in page.evaluate("JSON.stringify({...localStorage, ...sessionStorage})")
    page.get_by_role("button", name="Sign out").click()
    page.wait_for_url("**/sign-in*")
    page.goto(f"{farm.address}/jobs")
    page.wait_for_url("**/sign-in*")


def test_the_sign_in_of_an_organisation_leads_back_too(open_page: Open, farm: Farm) -> None:
    page = open_page(None)
    page.route("**/auth/ways", lambda route: route.fulfill(json={"oidc": True}))
    page.goto(f"{farm.address}/jobs?state=failed&label=team%3Dqa")
    link = page.get_by_role("link", name="Sign in with your organisation")
    expect(link).to_have_attribute(
        "href", "/auth/login?to=%2Fjobs%3Fstate%3Dfailed%26label%3Dteam%253Dqa"
    )


def test_a_link_signs_in_once_and_leaves_no_code_in_the_address(
    open_page: Open, farm: Farm
) -> None:
    path = farm.http.post("/auth/links").json()["path"]
    page = open_page(None)
    page.goto(farm.address + path)
    expect(heading(page)).to_have_text("Overview")
    assert "link_" not in page.url
    page.goto("about:blank")
    page.goto(farm.address + path)  # who is signed in already goes on
    expect(heading(page)).to_have_text("Overview")
    other = open_page(None)
    other.goto(farm.address + path)
    expect(other.get_by_text("used already")).to_be_visible()


def test_a_link_of_somebody_else_is_used_only_if_the_person_wants_it(
    open_page: Open, farm: Farm
) -> None:
    path = farm.http.post("/auth/links").json()["path"]
    page = open_page("viewer")
    page.goto(farm.address + path)
    expect(page.get_by_role("heading", level=1)).to_have_text("Sign in as somebody else?")
    assert "link_" not in page.url
    page.get_by_role("button", name="Stay signed in").click()
    expect(heading(page)).to_have_text("Overview")
    assert page.request.get(f"{farm.address}/api/v1/whoami").json()["role"] == "viewer"
    page.goto("about:blank")
    page.goto(farm.address + path)
    page.get_by_role("button", name="Use the link").click()
    expect(heading(page)).to_have_text("Overview")
    assert page.request.get(f"{farm.address}/api/v1/whoami").json()["role"] == "admin"


def test_the_keyboard_leads_everywhere(open_page: Open, farm: Farm) -> None:
    page = open_page()
    page.goto(farm.address)
    settle(page)
    page.keyboard.press("g")
    page.keyboard.press("j")
    expect(heading(page)).to_have_text(re.compile("Jobs"))
    page.keyboard.press("?")
    keys = page.get_by_role("dialog", name="Keys")
    expect(keys.get_by_text("Go to Workers")).to_be_visible()
    page.keyboard.press("Escape")
    expect(keys).to_be_hidden()
    page.keyboard.press("/")
    field = page.get_by_role("combobox", name="Search")
    expect(field).to_be_focused()
    page.keyboard.type("queu")
    page.keyboard.press("Enter")
    expect(heading(page)).to_have_text(re.compile("Queues"))
    page.keyboard.press("/")
    expect(field).to_be_focused()
    page.keyboard.type("#1")
    page.keyboard.press("Enter")
    page.wait_for_url("**/jobs/1")


def test_the_search_finds_workers_and_workflows_by_a_part_of_their_name(
    open_page: Open, farm: Farm
) -> None:
    flow = farm.workflow("Sought by its name", {"name": "only"})
    worker = farm.wait(farm.submit("true", priority="high"))["worker"]
    page = open_page()
    page.goto(farm.address)
    settle(page)
    page.keyboard.press("/")
    page.keyboard.type("no worker is called so")
    page.get_by_role("option", name=re.compile("^Workers with")).click()
    expect(page.get_by_text("No worker matches these filters")).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type(worker[1:])
    page.get_by_role("option", name=re.compile("^Workers with")).click()
    expect(page.get_by_role("link", name=re.compile(re.escape(worker)))).to_be_visible()
    page.keyboard.press("/")
    page.keyboard.type("sought BY")
    page.get_by_role("option", name=re.compile("^Workflows with")).click()
    found = page.get_by_role("table", name="Workflows")
    expect(found.get_by_role("link", name=str(flow), exact=True)).to_be_visible()
    expect(found.locator("[role=row][aria-rowindex]")).to_have_count(1)
    page.get_by_role("button", name=re.compile("Remove the filter name contains")).click()
    expect(found.locator("[role=row][aria-rowindex]")).not_to_have_count(1)


def test_the_search_offers_only_views_that_the_role_may_see(open_page: Open, farm: Farm) -> None:
    page = open_page("viewer")
    page.goto(farm.address)
    settle(page)
    page.keyboard.press("/")
    results = page.get_by_role("listbox", name="Results")
    expect(results.get_by_role("option", name="Workers", exact=True)).to_be_visible()
    expect(results.get_by_role("option", name="Tokens", exact=True)).to_have_count(0)


def test_the_theme_follows_the_system_until_somebody_chooses(open_page: Open, farm: Farm) -> None:
    page = open_page()
    dark, light = "rgb(14, 16, 20)", "rgb(252, 252, 253)"
    ground = "getComputedStyle(document.body).backgroundColor"
    page.emulate_media(color_scheme="dark")
    page.goto(farm.address)
    settle(page)
    assert page.evaluate(ground) == dark
    page.keyboard.press("d")
    assert page.evaluate(ground) == light
    page.reload()
    assert page.evaluate(ground) == light


def test_who_may_not_do_something_is_not_offered_it(open_page: Open, farm: Farm) -> None:
    viewer = open_page("viewer", "team")
    viewer.goto(farm.address)
    settle(viewer)
    views = viewer.get_by_role("navigation", name="Views")
    expect(views.get_by_role("link", name="Jobs")).to_be_visible()
    for refused in ("Tokens", "Audit", "Fuzzing"):
        expect(views.get_by_role("link", name=refused)).to_have_count(0)
    viewer.keyboard.press("/")
    results = viewer.get_by_role("listbox", name="Results")
    expect(results.get_by_role("option", name="Jobs")).to_be_visible()
    for refused in ("Tokens", "Audit", "Fuzzing"):
        expect(results.get_by_role("option", name=refused)).to_have_count(0)
    viewer.keyboard.press("Escape")
    expect(viewer.get_by_role("link", name="Submit a job")).to_have_count(0)
    viewer.goto(f"{farm.address}/tokens")
    expect(viewer.get_by_role("alert")).to_contain_text("This needs the role admin")
    expect(viewer.get_by_role("button", name="Create a token")).to_have_count(0)
    admin = open_page()
    admin.goto(farm.address)
    settle(admin)
    for offered in ("Tokens", "Audit", "Fuzzing"):
        expect(admin.get_by_role("link", name=offered)).to_be_visible()
    expect(admin.get_by_role("link", name="Submit a job")).to_be_visible()


def test_a_phone_opens_the_navigation_with_a_button(open_page: Open, farm: Farm) -> None:
    page = open_page(phone=True)
    page.goto(farm.address)
    settle(page)
    views = page.get_by_role("navigation", name="Views")
    expect(views).to_be_hidden()
    page.get_by_role("button", name="Open the navigation").click()
    views.get_by_role("link", name="Jobs").click()
    expect(heading(page)).to_have_text(re.compile("Jobs"))
    expect(views).to_be_hidden()


def test_no_script_but_ours_runs_and_no_other_host_is_asked(open_page: Open, farm: Farm) -> None:
    page = open_page(strict=False)  # the refusal is an error of the page
    asked: set[str] = set()
    page.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
    page.goto(f"{farm.address}/jobs")
    settle(page)
    refused = page.evaluate(
        """() => new Promise((done) => {
          document.addEventListener("securitypolicyviolation", (e) => done(e.violatedDirective));
          const script = document.createElement("script");
          script.textContent = "window.owned = true";
          document.body.append(script);
          setTimeout(() => done("nothing"), 1000);
        })"""
    )
    assert refused.startswith("script-src")
    assert page.evaluate("window.owned") is None
    assert asked == {urlsplit(farm.address).netloc}


def test_names_of_jobs_are_shown_as_text(open_page: Open, farm: Farm) -> None:
    number = farm.submit("true", name=EVIL)
    page = open_page()
    for path in ("/jobs", f"/jobs/{number}"):
        page.goto(farm.address + path)
        settle(page)
        expect(page.get_by_text(EVIL).first).to_be_visible()
        assert page.title() != "owned"
        assert page.locator("img[src=x]").count() == 0


def test_the_first_view_is_small(farm: Farm, open_page: Open) -> None:
    page = open_page()
    sizes: dict[str, int] = {}

    def note(response: Any) -> None:
        if "/api/" not in response.url and "/auth/" not in response.url:
            sizes[response.url] = int(response.headers.get("content-length", "0"))

    page.on("response", note)
    page.goto(farm.address)
    settle(page)
    assert 20_000 < sum(sizes.values()) < 300_000, sizes


@pytest.mark.parametrize("path", ["/no/such/view"])
def test_an_unknown_address_says_so(path: str, open_page: Open, farm: Farm) -> None:
    page = open_page()
    page.goto(farm.address + path)
    expect(page.get_by_text("There is nothing at this address")).to_be_visible()
