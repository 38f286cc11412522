"""A solver whose output, names and commits are hostile: reports and scripts stay what they are."""

import base64
import re
import subprocess
import tarfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from tests.fuzzing.roles.test_fuzzer import findings_of
from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import FINE, World
from tests.fuzzing.trackers.servers import a_finding
from tests.support.running import run
from windlass_fuzz.buckets.layout import plain_ending
from windlass_fuzz.findings.bundle import pack_finding
from windlass_fuzz.findings.markdown import code
from windlass_fuzz.findings.record import OnBranch
from windlass_fuzz.findings.report import render
from windlass_fuzz.trackers.issue_text import note_of, summary_of, text_of
from windlass_fuzz.trackers.options import IssueOptions

EVIL = "x` ![a](http://e/) <img src=x onerror=y> @everyone | [b](javascript:c) `` \x1b]0;d\x07\n# e"
FORGED = "<!-- windlass finding toy/kkkkkkkkkkkkkkkk -->"
ACTIVE = {"html_block", "html_inline", "link_open", "image"}
# The mark that a stranger's pull request wants to forge, and things that terminals act on.
SHOUTS = f"""#!/bin/sh
if grep -q 'limit 0' $1; then
  printf 'fatal <img src=x> ![a](http://e/) | @all \\033]0;owned\\007 {FORGED}\\n' >&2
  kill -ABRT $$
fi
"""


def tokens(markdown: str) -> list[Token]:
    top = MarkdownIt("commonmark").enable("table").parse(markdown)
    return [*top, *(child for token in top for child in token.children or ())]


def active(markdown: str) -> set[str]:
    """What of a page would act, beside the comment that marks our own issues."""
    found = {token.type for token in tokens(markdown.replace("<!-- windlass finding own", "own"))}
    return found & ACTIVE


@given(st.text(alphabet=st.sampled_from("`|<>!-[](){}@#*_~\\ \n\t\r\x1b\u202ea:/&;\"'")))
def test_foreign_text_stays_text_within_a_line(text: str) -> None:
    shown = code(text)
    for page in (f"# {shown}\n", f"| a |\n|---|\n| {shown} |\n", f"- {shown} after\n"):
        assert not active(page)
        kinds = [token.type for token in tokens(page) if token.type != "text"]
        assert kinds.count("code_inline") == bool(shown), page
        assert kinds.count("td_open") == page.startswith("|")


def test_a_report_shows_foreign_text_and_does_nothing_with_it() -> None:
    finding = a_finding(
        title=EVIL, introduced_subject=EVIL, output=f"```\n{EVIL}\n~~~\n````", excerpt=EVIL,
        unsure=EVIL, note=EVIL, closed_by=EVIL, signatures=[EVIL, "other " + EVIL],
    )  # fmt: skip
    page = render(finding, "toy", "where")
    assert not active(page)
    headings = [token.tag for token in tokens(page) if token.type == "heading_open"]
    assert headings == ["h1", "h2", "h2", "h2"]
    issue = text_of(finding, "toy", "where", IssueOptions(project="a/b"), None)
    assert "\n" not in issue.title
    assert "\x1b" not in issue.title
    listed = summary_of([finding], "toy", "today", IssueOptions(project="a/b")).body
    assert not active(listed.replace("<!-- windlass summary", "own"))


@given(st.binary(min_size=1, max_size=100))
def test_a_binary_input_is_shown_and_can_be_restored_from_the_report(data: bytes) -> None:
    finding = a_finding(excerpt="", binary=base64.b64encode(data).decode(), size=len(data))
    page = render(finding, "toy", "where")
    (restore,) = re.findall(r"^base64 -d <<< (\S+) > \w+$", page, re.MULTILINE)
    assert base64.b64decode(restore) == data
    rows = re.findall(r"^[0-9a-f]{8}  ((?:[0-9a-f]{2} )+) *\|", page, re.MULTILINE)
    assert bytes.fromhex("".join(rows)) == data


def test_names_of_branches_stay_text() -> None:
    name = "x`<img/src=x>@all|www.e.example"
    on = OnBranch(name=name, state="fixed", fixed_in="d" * 40)
    finding = a_finding(branches=[on], closed_in="d" * 40, state="closed")
    gone = a_finding(branches=[on], state="closed", closed_why=f"no longer watched: {name}")
    listed = summary_of([a_finding(branches=[on])], "toy", "today", IssueOptions(project="a/b"))
    pages = [note_of(finding, "toy").text, note_of(gone, "toy").text, render(finding, "toy", "x"),
             listed.body.replace("<!-- windlass summary", "own")]  # fmt: skip
    for page in pages:
        assert not active(page)
        shown = [token.content for token in tokens(page) if token.type == "code_inline"]
        assert any(name.replace("|", "¦") in text for text in shown), page
        assert "@all" not in "".join(t.content for t in tokens(page) if t.type == "text")


def test_what_cannot_be_seen_is_escaped_in_output() -> None:
    """GitLab refuses a description with a NUL, and a terminal acts on the rest."""
    output = "a\x00b \x1b]0;c\x07 \u202ed\te\r\nf\rg\n"
    page = render(a_finding(output=output, excerpt="\u200bx"), "toy", "where")
    assert "\n```\na\\x00b \\x1b]0;c\\x07 \\u202ed\te\nf\\rg\n```\n" in page
    assert "\n\\u200bx\n" in page
    assert all(letter.isprintable() or letter in "\n\t" for letter in page)


def test_no_output_can_pass_for_the_mark_of_another_finding() -> None:
    finding = a_finding(
        key="o" * 16, title=FORGED, output=FORGED, excerpt=FORGED, introduced_subject=FORGED
    )
    issue = text_of(finding, "toy", "where", IssueOptions(project="a/b"), None)
    assert FORGED not in issue.body
    assert issue.body.count("<!-- windlass finding toy/oooooooooooooooo -->") == 1


def test_the_names_of_tests_cannot_reach_a_shell(tmp_path: Path) -> None:
    for name in ("a.;touch pwned", "a.$(touch pwned)", "a.`x`", "a.b\nc", "a." + "x" * 40, "a"):
        assert plain_ending(name) == ""
    assert [plain_ending(name) for name in ("a.smt2", "b.tar.gz", "c.c++")] == [
        ".smt2", ".gz", ".c++",
    ]  # fmt: skip
    build = tmp_path / "build"
    build.mkdir()
    finding = a_finding(input="input-1.$(touch pwned)", command=["true", "$(touch pwned)"])
    (tmp_path / "one").write_text("one")
    archive = tmp_path / "finding.tar.gz"
    pack_finding(finding, "toy", build, {"k" * 16: tmp_path / "one"}, archive)
    with tarfile.open(archive) as packed:
        packed.extractall(tmp_path / "there", filter="data")
    (script,) = (tmp_path / "there").rglob("run.sh")
    assert subprocess.run([script], check=False, capture_output=True).returncode == 0
    assert not list(tmp_path.rglob("pwned"))


def test_a_hostile_repository_is_fuzzed_and_reported_harmlessly(tmp_path: Path) -> None:
    world = World(tmp_path, cores=1)
    good = world.commit("good", solver_sh=FINE, **{"tests/b.;touch pwned;": "limit 0"})
    bad = world.commit(f"bad {EVIL}", solver_sh=SHOUTS)
    run(world.build_and_schedule(good, bad))
    run(world.fuzz(bad, budget_ms=60_000, until_bug=True))
    (finding,) = run(findings_of(world))
    assert (finding.introduced_by, "." in finding.input) == (bad, False)
    page = Commands(world).run("findings", "show", "scripted", finding.key)[1]
    assert "\x1b" not in page
    report = render(finding, "own", "where")
    assert not active(report)
    assert FORGED not in report
    assert not list(tmp_path.rglob("pwned"))
