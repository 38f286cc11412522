"""The SARIF file of a check: what code hosts ask of it, and text of foreign programs in it."""

import re
from pathlib import Path
from typing import Any

import pytest

from tests.fuzzing.trackers.servers import a_finding
from windlass_fuzz.findings.sarif import RULES, Place, place_of, sarif

HERE = Place("src/a.c", 1)


def a_message(**fields: Any) -> str:
    finding = a_finding(**fields)
    (found,) = sarif([finding], {finding.key: HERE}, set())["runs"][0]["results"]
    return str(found["message"]["text"])


def test_every_rule_says_what_github_asks_for() -> None:
    (made,) = sarif([], {}, set())["runs"]
    rules = made["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == sorted(RULES)
    for rule in rules:
        for text in ("shortDescription", "fullDescription", "help"):
            assert rule[text]["text"].startswith(RULES[rule["id"]])


def test_two_bugs_on_one_line_are_two_alerts() -> None:
    """GitHub computes this fingerprint from rule and line if the file has none."""
    both = [a_finding("1" * 16), a_finding("2" * 16)]
    made = sarif(both, {one.key: HERE for one in both}, set())
    prints = [one["partialFingerprints"] for one in made["runs"][0]["results"]]
    assert [one["primaryLocationLineHash"] for one in prints] == [one.key for one in both]


def test_what_a_program_printed_becomes_no_link_and_no_control() -> None:
    text = a_message(title="a [click](https://e/) \\ \x1b]0;b\x07 \u202e c", size=1)
    assert re.search(r"(?<!\\)\[", text) is None
    assert "a \\[click\\](https://e/) \\\\ " in text
    assert all(letter.isprintable() for letter in text)
    assert text.endswith("c (with an input of 1 byte)")


@pytest.mark.parametrize(
    ("said", "place"),
    [
        ("/build/x/src/a.c:2: error", Place("src/a.c", 2)),
        ("src/a.c:900: beyond the end", Place("src/a.c", 3)),
        ("src/a.c:0: before the start", Place("src/a.c", 1)),
        ("src/empty.c:7: nothing", Place("src/empty.c", 1)),
        (".git/config.x:1: not ours", Place("changed.c", 1)),
        ("out/secret.c:1: a link out of it", Place("changed.c", 1)),
        ("nothing", Place("changed.c", 1)),
    ],
)
def test_the_place_is_a_line_of_the_repository(tmp_path: Path, said: str, place: Place) -> None:
    sources = tmp_path / "sources"
    for name, text in (
        ("sources/src/a.c", "1\n2\n3\n"),
        ("sources/src/empty.c", ""),
        ("sources/.git/config.x", "x\n"),
        ("sources/changed.c", "x\n"),
        ("outside/secret.c", "x\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    (sources / "out").symlink_to(tmp_path / "outside")
    assert place_of(a_finding(output=said), sources, ["deleted.c", "changed.c"]) == place


def test_without_a_line_the_place_is_the_innermost_changed_function(tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text(
        "int one() {\n  return 1;\n}\n\nint B::two(int x) {\n  return x;\n}\n"
    )
    (tmp_path / "huge.bin").write_bytes(b"\xff\x00")
    changed = ["deleted.c", "huge.bin", "a.cpp"]
    finding = a_finding(frames=["elsewhere", "B::two", "one"])
    assert place_of(finding, tmp_path, changed) == Place("a.cpp", 5)
    assert place_of(a_finding(frames=["elsewhere"]), tmp_path, changed) == Place("huge.bin", 1)
