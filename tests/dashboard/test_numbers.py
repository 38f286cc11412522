"""Every number leads to what it counts."""

import re
from typing import Any, Final

from playwright.sync_api import expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm, settle
from tests.dashboard.views import VIEWS

COUNTS: Final = [
    "Jobs", "Queued", "Running", "Completed", "Failed", "Ready to run", "Wait p90", "Run p50",
    "Runs", "Open findings", "New findings", "Fixed", "Reached first", "Workers", "Attempt",
]  # fmt: skip
# Runs of a fuzzer are no jobs, and what is kept of them is in the row of their commit.
NOTHING_BEHIND: Final = {"fuzzing-statistics": {"Runs"}}
# Numbers of columns that count something, without a link or a button.
DEAD_ENDS: Final = """(names) => {
  const found = [];
  for (const table of document.querySelectorAll("#content table, #content [role=table]")) {
    const heads = [...table.querySelectorAll("thead th, [role=columnheader]")];
    for (const row of table.querySelectorAll("tbody tr, [role=row]")) {
      const cells = [...row.querySelectorAll("th[scope=row], td, [role=cell]")];
      cells.forEach((cell, at) => {
        const head = heads[at]?.textContent ?? "";
        if (!names.includes(head) || !/^[\\d.,+]+/.test(cell.textContent)) return;
        if (!cell.querySelector("a, button")) found.push(`${head}: ${cell.textContent}`);
      });
    }
  }
  return found;
}"""
SEEN: Final = """(names) => names.filter((name) =>
  [...document.querySelectorAll("#content thead th, #content [role=columnheader]")]
    .some((head) => head.textContent === name))"""


def test_numbers_in_tables_are_links(open_page: Open, farm: Farm, places: dict[str, Any]) -> None:
    farm.wait_for_figures()
    page = open_page()
    wrong, seen = {}, set[str]()
    for name, path in VIEWS.items():
        page.goto(farm.address + path.format(**places))
        settle(page)
        seen.update(page.evaluate(SEEN, COUNTS))
        asked = [one for one in COUNTS if one not in NOTHING_BEHIND.get(name, ())]
        if found := page.evaluate(DEAD_ENDS, asked):
            wrong[name] = found
    assert wrong == {}
    assert seen == set(COUNTS)


def test_work_that_pools_count_leads_to_its_jobs(open_page: Open, farm: Farm) -> None:
    needs = {"requires": ["memory>=9TiB"], "queue": "far"}
    jobs = {farm.submit("true", **needs), farm.submit("true", **needs)}
    other = farm.submit("true", queue="far", requires=["gpus>=9"])
    page = open_page()
    page.goto(f"{farm.address}/pools")
    row = page.get_by_role("row", name=re.compile("could not run it: needs memory ≥ 9 TiB"))
    row.get_by_role("link", name="2", exact=True).click()
    listed = page.get_by_role("table", name="Jobs of this work")
    expect(listed.get_by_role("rowheader")).to_have_text([str(job) for job in sorted(jobs)])
    page.reload()
    expect(listed.get_by_role("rowheader")).to_have_count(2)
    page.get_by_role("link", name="Close").click()
    expect(listed).to_have_count(0)
    for job in (*jobs, other):
        farm.http.post(f"/api/v1/jobs/{job}/cancel")


def test_who_may_not_see_the_jobs_of_others_gets_plain_numbers(open_page: Open, farm: Farm) -> None:
    waiting = farm.submit("true", requires=["memory>=9TiB"])
    page = open_page("viewer", "media")
    page.goto(f"{farm.address}/pools")
    table = page.get_by_role("table", name="Work that waits or runs")
    expect(table.get_by_role("row").nth(1)).to_be_visible()
    expect(table.get_by_role("link", name=re.compile(r"^\d+\+?$"))).to_have_count(0)
    farm.http.post(f"/api/v1/jobs/{waiting}/cancel")


def test_the_attempts_of_a_worker_are_listed(
    open_page: Open, farm: Farm, places: dict[str, Any]
) -> None:
    job = places["job"]
    worker = farm.http.get(f"/api/v1/jobs/{job}").json()["worker"]
    page = open_page()
    page.goto(f"{farm.address}/workers/{worker}")
    page.get_by_role("button", name=re.compile(r"^\d+ attempts?$")).click()
    listed = page.get_by_role("table", name="Attempts on this worker")
    listed.get_by_role("link", name=str(job), exact=True).click()
    page.wait_for_url(f"**/jobs/{job}")
