"""Every view: nothing serious for people with aids, nothing beyond the edge of a phone."""

import re
from typing import Any

import pytest

import hatch_build
from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm, settle
from tests.dashboard.views import VIEWS
from tests.support.forms import LONG

AXE = hatch_build.MODULES / "axe-core" / "axe.min.js"
SERIOUS = ("serious", "critical")
WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"

NOUNS = (
    "job|worker|machine|slot|shape|attempt|line|question|run|workflow|dependency|dependencie|token"
    "|row|event|retry|retrie|limit|finding|function|gap|time"
)
ONE_OF_MANY = re.compile(rf"(?<![\w.,-])1 (?:[a-z]+ )?(?:{NOUNS})s\b")


def found_by_axe(page: Any) -> list[str]:
    """What axe finds wrong: the rule, and the first element."""
    if not page.evaluate("'axe' in window"):
        # As the test's own code: the page's policy refuses any other script.
        page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document, { resultTypes: ['violations'] })")
    return [
        f"{one['id']}: {one['nodes'][0]['html']} {one['nodes'][0]['failureSummary']}"
        for one in found["violations"]
        if one["impact"] in SERIOUS
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_view_and_one_of_a_kind_is_not_many(
    theme: Any, open_page: Open, farm: Farm, places: dict[str, Any]
) -> None:
    """In the short form, each view in one of the themes. Texts of the server count, too."""
    page = open_page()
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    problems = {}
    visited = list(VIEWS.items())
    for name, path in visited if LONG else visited[theme == "dark" :: 2]:
        page.goto(farm.address + path.format(**places))
        settle(page)
        many = ONE_OF_MANY.findall(page.locator("#content").inner_text())
        if found := [*found_by_axe(page), *many]:
            problems[name] = found
    assert problems == {}


def test_no_view_is_wider_than_a_phone(open_page: Open, farm: Farm, places: dict[str, Any]) -> None:
    page = open_page(phone=True)
    wider = {}
    for name, path in VIEWS.items():
        page.goto(farm.address + path.format(**places))
        settle(page)
        if beyond := page.evaluate(WIDER):
            wider[name] = beyond
    assert wider == {}


def test_the_sign_in_page_too(open_page: Open, farm: Farm) -> None:
    page = open_page(None, phone=True)
    page.goto(f"{farm.address}/sign-in")
    page.get_by_label("Token").wait_for()
    assert (found_by_axe(page), page.evaluate(WIDER)) == ([], 0)
