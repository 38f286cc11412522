"""The fuzzing view: statistics, what commits reached first, alarms, and the coverage report."""

import re

from playwright.sync_api import expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm
from tests.dashboard.test_fleet import visit


def test_statistics_show_figures_over_time_and_what_a_commit_reached_first(
    open_page: Open, farm: Farm
) -> None:
    page = visit(open_page(), farm, "/fuzzing")
    page.get_by_role("tab", name="Statistics").click()
    expect(page.get_by_role("heading", name="address (fuzz_parse with libfuzzer)")).to_be_visible()
    expect(page.get_by_text("3 runs")).to_be_visible()
    expect(page.get_by_role("row", name=re.compile("^Coverage .* 150$"))).to_be_visible()
    line = page.get_by_role("img", name="Executions of address (fuzz_parse with libfuzzer) by day")
    expect(line).to_be_visible()
    row = page.get_by_role("row", name=re.compile("^eeeeeeeeeeee"))
    expect(row).to_contain_text("150 (+30)")
    row.get_by_role("link", name="2 functions, 7 lines").click()
    expect(page.get_by_text("src/parse.c:parse_<b>term</b>(int)")).to_be_visible()
    assert "commit=eeee" in page.url


def test_commits_that_cannot_be_fuzzed_are_shown_as_alarms(open_page: Open, farm: Farm) -> None:
    page = visit(open_page(), farm, "/fuzzing")
    alarms = page.get_by_role("list", name="Alarms")
    expect(alarms).to_contain_text("eeeeeeeeeeee only 0 of 90 executions ran to an answer")
    expect(page.get_by_role("row", name=re.compile("^toy"))).to_contain_text("1")


def test_alarms_that_nobody_has_heard_of_are_shown_with_the_next_try(
    open_page: Open, farm: Farm
) -> None:
    page = visit(open_page("viewer"), farm, "/fuzzing")
    alarms = page.get_by_role("list", name="Alarms")
    refused = "did not reach the webhook: it answered <b>503</b>"
    expect(alarms).to_contain_text(re.compile(rf"{refused} \(1 try, next try due (in|just|\d)"))
    expect(alarms).to_contain_text("the alarm was not mailed: refused (1 try, given up)")
    limited = visit(open_page("viewer", "team"), farm, "/fuzzing")
    expect(limited.get_by_text("Your token may not read fuzzing")).to_be_visible()
    expect(limited.get_by_text("503")).to_have_count(0)


def test_each_target_links_to_its_part_of_the_coverage_report(open_page: Open, farm: Farm) -> None:
    page = visit(open_page(), farm, "/fuzzing?solver=toy&tab=statistics")
    targets = page.get_by_role("list", name="Coverage by target")
    expect(targets).to_contain_text("fuzz_parse 2 of 3 functions, 20 of 25 lines")
    expect(targets).to_contain_text("fuzz_<b> no input wrote any coverage")
    expect(targets.get_by_role("link")).to_have_count(1)
    with page.context.expect_page() as opened:
        targets.get_by_role("link", name="fuzz_parse").click()
    opened.value.wait_for_url("**/report/page0.html")


def test_the_coverage_report_opens_with_its_style_and_can_do_nothing(
    open_page: Open, farm: Farm
) -> None:
    page = visit(open_page(), farm, "/fuzzing?solver=toy&tab=statistics")
    with page.context.expect_page() as opened:
        page.get_by_role("link", name="Coverage report").click()
    report = opened.value
    heading = report.get_by_role("heading", name="Coverage of toy")
    expect(heading).to_have_css("color", "rgb(1, 2, 3)")
    assert report.title() != "owned"
    report.get_by_role("link", name="src/parse.c").click()
    report.wait_for_url("**/report/page0.html")
    expect(heading).to_be_visible()
    assert report.title() != "owned"
    report.get_by_role("button", name="b").click()
    assert report.url.endswith("page0.html"), "a form was sent"
    limited = open_page("viewer", "team")
    reply = limited.goto(f"{farm.address}/api/v1/fuzz/toy/report/index.html")
    assert reply is not None
    assert reply.status == 403
