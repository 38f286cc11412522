"""What a page says when something is wrong: what happened, and what to do about it."""

import contextlib
import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm, running_farm, settle, sign_in

GONE = "It may have been deleted, or be in a namespace that your token does not see."
ASK = "Sign in with a token that may, or ask an administrator for one."
FILTER = "Change or remove this filter."

REFUSED = [
    ("/jobs/999999", "Job 999999 does not exist.", GONE),
    ("/workflows/999999", "Workflow 999999 does not exist.", GONE),
    ("/workers/nobody", "Worker nobody does not exist.", GONE),
    ("/pools/none", "Pool none does not exist.", GONE),
    ("/jobs?state=lost", "Unknown state lost", FILTER),
    ("/jobs?regex=(", "Expected regex to be a regular expression", FILTER),
    ("/workflows?state=lost", "Unknown state lost", FILTER),
    ("/?since=banana", "Expected since to be a duration such as 10m, or a time", FILTER),
    (
        "/jobs?as_of=2999-01-01T00:00:00Z",
        "Expected as_of to be a time in the past",
        "Choose another time in the header, or go back to now.",
    ),
]
OF_OTHERS = [
    ("/jobs?namespace=default", "This token does not see namespace default.", ASK),
    ("/?namespace=default", "This token does not see namespace default.", ASK),
    ("/jobs/1", "Job 1 does not exist.", GONE),
    ("/audit", "This needs the role admin, the token has viewer.", ASK),
]


def test_what_cannot_be_shown_says_why_and_what_to_do(open_page: Open, farm: Farm) -> None:
    for page, cases in ((open_page(), REFUSED), (open_page("viewer", "media"), OF_OTHERS)):
        for path, message, advice in cases:
            page.goto(farm.address + path)
            told = page.locator("#content").get_by_role("alert")
            expect(told).to_contain_text(message)
            expect(told).to_contain_text(advice)
            expect(told.get_by_role("button", name="Try again")).to_have_count(0)


@pytest.mark.parametrize("kind", ["job", "workflow"])
def test_an_address_without_a_number_is_explained(kind: str, open_page: Open, farm: Farm) -> None:
    page = open_page()
    for text in ("abc", "0", "99999999999999999999"):
        page.goto(f"{farm.address}/{kind}s/{text}")
        expect(page.get_by_text(f"“{text}” is not the number of a {kind}")).to_be_visible()
    page.get_by_role("link", name=f"Go to the list of {kind}s").click()
    page.wait_for_url(f"**/{kind}s")


def test_a_revoked_token_leads_to_the_sign_in_with_the_reason(open_page: Open, farm: Farm) -> None:
    body = {"name": "soon revoked", "role": "viewer"}
    token = farm.http.post("/api/v1/tokens", json=body).json()["token"]
    tokens = farm.http.get("/api/v1/tokens").json()["tokens"]
    number = next(one["id"] for one in tokens if one["name"] == body["name"])
    page = open_page(None)
    page.goto(farm.address)
    page.get_by_label("Token").wait_for()
    expect(page.get_by_text("You are signed out")).to_have_count(0)  # nobody was signed in
    sign_in(page, farm, token)
    page.goto(f"{farm.address}/queues")
    settle(page)
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    assert farm.http.delete(f"/api/v1/tokens/{number}").status_code == 200
    expect(page.get_by_text("You are signed out: your session has ended")).to_be_visible(
        timeout=20_000
    )
    page.get_by_label("Token").fill(farm.token)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", level=1, name="Queues")).to_be_visible()


def test_a_page_says_that_the_server_is_away_and_goes_on_when_it_is_back(
    browser: Browser, tmp_path: Path
) -> None:
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.ExitStack())
        farm = first.enter_context(running_farm(tmp_path))
        page = stack.enter_context(browser.new_context()).new_page()
        sign_in(page, farm, farm.token)
        for path in ("/workers", "/queues"):
            page.goto(farm.address + path)
            settle(page)
        expect(page.get_by_text("live", exact=True)).to_be_visible()
        first.close()
        away = page.get_by_role("alert").filter(has_text="The server does not answer: what you see")
        expect(away).to_be_visible(timeout=20_000)
        told = page.locator("#content").get_by_role("alert")
        page.get_by_role("link", name="Jobs", exact=True).click()  # nobody has opened it before
        expect(told).to_contain_text("This part of the page could not be loaded.")
        expect(told).to_contain_text("Check that the server is running, then try again.")
        page.get_by_role("link", name="Workers", exact=True).click()
        expect(told).to_contain_text("The server does not answer.", timeout=20_000)
        expect(told).to_contain_text("Check that it is running and that you can reach it")
        expect(told.get_by_role("button", name="Try again")).to_be_visible()
        port = urlsplit(farm.address).port or 0
        again = stack.enter_context(running_farm(tmp_path, port=port))
        assert again.address == farm.address
        expect(page.get_by_role("heading", name=re.compile(r"^1 worker$"))).to_be_visible(
            timeout=20_000
        )
        expect(away).to_have_count(0)
