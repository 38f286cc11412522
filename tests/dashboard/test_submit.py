"""Submitting from the page: forms from schemas, templates, and the same as text beside it."""

import re

from playwright.sync_api import expect

from tests.dashboard.conftest import Open
from tests.dashboard.farm import Farm, settle

EVIL = "<img src=x onerror=\"document.title='owned'\">"


def test_a_form_submits_a_job_that_runs_and_shows_the_same_as_text(
    open_page: Open, farm: Farm
) -> None:
    page = open_page()
    page.goto(f"{farm.address}/submit?task=shell")
    settle(page)
    status = page.locator("aside").get_by_role("status")
    expect(status).to_have_text("Fill in the form: it is checked as you type.")
    page.get_by_label("name", exact=True).fill("from")
    expect(status).to_have_text("Not ready: fill in argv")
    page.get_by_label("argv *").fill(f"echo\n{EVIL}")
    page.get_by_text("6 more arguments").click()
    expect(page.get_by_text("Memory limit of each process, such as 512MiB.")).to_be_visible()
    offered = page.locator("datalist option[value=archive]")  # a queue that the farm has
    expect(offered).to_have_count(1)
    page.get_by_label("name", exact=True).fill("from the page")
    expect(status).to_have_text("Ready to submit")
    texts = page.locator("aside pre")
    expect(texts.first).to_contain_text("windlass submit --name 'from the page' -- echo")
    expect(texts.nth(1)).to_contain_text("windlass.named('shell')")
    page.get_by_label("priority", exact=True).fill("urgent")
    expect(page.get_by_text(re.compile("expected priority to be"))).to_have_count(2)
    page.get_by_label("priority", exact=True).fill("")
    expect(status).to_have_text("Ready to submit")
    page.locator("form").get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    shown = farm.wait(int(page.url.rpartition("/")[2]))
    assert (shown["state"], shown["name"]) == ("completed", "from the page")
    assert page.title() != "owned"


def test_a_command_line_is_split_as_a_shell_would(open_page: Open, farm: Farm) -> None:
    page = open_page()
    page.goto(f"{farm.address}/submit?task=shell")
    settle(page)
    argv = page.get_by_label("argv *")
    argv.fill("echo hello world")
    warning = "the program is called 'echo hello world', with its spaces"
    expect(page.locator("aside").get_by_text(warning)).to_be_visible()
    line = page.get_by_label("command line", exact=True)
    line.fill('echo \'hello  "world"\' a\\ b "c\'d\\$"')
    expect(argv).to_have_value('echo\nhello  "world"\na b\nc\'d$')
    expect(page.locator("aside").get_by_text(warning)).to_have_count(0)
    line.fill("printf '' x")
    expect(argv).to_have_value('["printf","","x"]')
    line.fill("echo 'open")
    expect(page.get_by_text("A quote is not closed.")).to_be_visible()


def test_a_function_of_a_worker_has_a_form_of_its_parameters(open_page: Open, farm: Farm) -> None:
    page = open_page()
    page.goto(f"{farm.address}/submit?task=examples.demo_tasks:primes_below")
    settle(page)
    page.get_by_label("limit *").fill("100")
    call = "windlass call examples.demo_tasks:primes_below '{\"limit\":100}'"
    expect(page.locator("aside pre").last).to_have_text(call)
    page.locator("form").get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    assert farm.wait(int(page.url.rpartition("/")[2]))["result"] == 25


def test_a_template_is_started_with_its_parameters(open_page: Open, farm: Farm) -> None:
    page = open_page("submitter")
    page.goto(f"{farm.address}/submit?template=nightly")
    settle(page)
    page.get_by_label("branch", exact=True).fill("release")
    expect(page.locator("aside pre").first).to_have_text(
        "windlass workflows start nightly --param branch=release"
    )
    page.get_by_role("button", name="Start").click()
    page.wait_for_url(re.compile(r"/workflows/\d+$"))
    viewer = open_page("viewer")
    viewer.goto(f"{farm.address}/submit")
    expect(viewer.get_by_text("Your token may not submit jobs")).to_be_visible()


def test_what_is_left_empty_before_an_argument_by_position_has_its_default(
    open_page: Open, farm: Farm
) -> None:
    page = open_page()
    page.goto(f"{farm.address}/submit?task=examples.demo_tasks:thumbnail_size")
    settle(page)
    page.get_by_label("width *").fill("640")
    page.get_by_label("scale", exact=True).fill("0.5")
    page.locator("form").get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    assert farm.wait(int(page.url.rpartition("/")[2]))["result"] == [320, 240]


def test_an_argument_of_several_lines_is_given_in_a_list(open_page: Open, farm: Farm) -> None:
    page = open_page()
    page.goto(f"{farm.address}/submit?task=shell")
    settle(page)
    page.get_by_label("argv *").fill('["sh", "-c", "echo one\\necho two", ""]')
    page.locator("form").get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    shown = farm.wait(int(page.url.rpartition("/")[2]))
    assert shown["args"]["argv"] == ["sh", "-c", "echo one\necho two", ""]


def test_a_job_like_one_that_completed_is_submitted_with_a_change(
    open_page: Open, farm: Farm
) -> None:
    label = {"labels": {"team": "a b"}, "retries": 2}
    first = farm.submit("sh", "-c", "echo one\necho two", name="the first", **label)
    farm.wait(first)
    page = open_page("operator")
    page.goto(f"{farm.address}/jobs/{first}")
    settle(page)
    expect(page.get_by_role("button", name="Retry")).to_have_count(0)
    page.get_by_role("button", name="More actions").click()
    page.get_by_role("menuitem", name="Submit one like it").click()
    page.get_by_label("name", exact=True).fill("the second")
    page.locator("form").get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    before, second = farm.wait(first), farm.wait(int(page.url.rpartition("/")[2]))
    assert (second["name"], second["id"] > first) == ("the second", True)
    for option in ("args", "labels", "queue", "namespace", "retries", "timeout", "requires"):
        assert second[option] == before[option], option


def test_a_call_like_another_has_its_arguments_in_the_form_of_its_function(
    open_page: Open, farm: Farm
) -> None:
    call = {"function": "examples.demo_tasks:thumbnail_size", "args": [640], "kwargs": {}}
    job = {"task": "python", "args": call, "priority": "high"}
    number = farm.http.post("/api/v1/jobs", json={"jobs": [job]}).json()["ids"][0]
    page = open_page()
    page.goto(f"{farm.address}/submit?like={number}")
    settle(page)
    expect(page.get_by_label("width *")).to_have_value("640")
    page.get_by_label("height", exact=True).fill("100")
    page.locator("form").get_by_role("button", name="Submit").click()
    page.wait_for_url(re.compile(r"/jobs/\d+$"))
    assert farm.wait(int(page.url.rpartition("/")[2]))["result"] == [160, 25]
