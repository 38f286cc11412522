"""Typos in commands, flags, filters and names get a suggestion."""

from pathlib import Path

import pytest

from tests.cli.program import Program

FILE = "name: w\nparameters: {word: {default: x}}\njobs:\n  one: {run: ['true']}\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("workfows",), 'Did you mean "workflows"?'),
        (("workflows", "sumbit"), "unknown command: workflows sumbit; did you mean submit?"),
        (("workers", "drian", "w"), "unknown command: workers drian; did you mean drain?"),
        (
            ("jobs", "--stat", "queued"),
            "`windlass jobs` has no option --stat; did you mean --state?",
        ),
        (("submit", "--match", "x"), "`windlass submit` has no option --match\n"),
        (("submit", "--max-retries=3"), "; did you mean --retries?"),
        (
            ("workflows", "submit", "x", "--wait"),
            "`windlass workflows submit` has no option --wait\n",
        ),
        (("jobs", "5"), "unknown command: jobs 5 (known: delete)"),
        (("workflows", "graph", "x", "--format", "mermad"), 'Did you mean "mermaid"?'),
        (("cancel", "--where", "quue=batch"), "did you mean queue?"),
        (("config", "--set", "pol_open=3"), "did you mean pool_open?"),
    ],
)
def test_a_misspelt_word_of_a_command_line_is_named_with_the_right_one(
    tmp_path: Path, words: tuple[str, ...], said: str
) -> None:
    done = Program(tmp_path)(*words)
    assert done.returncode == 2, done.stdout
    assert said in done.stderr
    assert done.stderr.startswith("windlass: ")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("run:", "rum:", ".yaml:4: unknown key rum in jobs.one; did you mean run?"),
        ("jobs:", "jbos:", ".yaml:3: unknown key jbos in the workflow; did you mean jobs?"),
        ("'true'", "'${{ parameters.wrd }}'", "; did you mean parameters.word?"),
        ("['true']}", "['true']}\n  two: {run: [x], after: noe}", "; did you mean one?"),
    ],
)
def test_a_misspelt_key_of_a_workflow_file_is_named_with_the_right_one(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(FILE.replace(old, new))
    done = Program(tmp_path)("workflows", "submit", str(file), "--dry-run")
    assert (done.returncode, said in done.stderr) == (2, True), done.stderr
    file.write_text(FILE)
    right = Program(tmp_path)("workflows", "submit", str(file), "--dry-run")
    assert right.stdout.endswith("\n1 job; nothing was submitted\n")
    wrong = Program(tmp_path)("workflows", "submit", str(file), "--dry-run", "--param", "wrod=1")
    assert "unknown key wrod in parameters; did you mean word?" in wrong.stderr


def test_a_misspelt_state_gets_a_suggestion_from_the_server(up: Program) -> None:
    for words in (("jobs",), ("workflows",)):
        done = up(*words, "--state", "complated")
        said = "windlass: unknown state complated; did you mean completed?\n"
        assert (done.returncode, done.stderr) == (2, said), words


def test_a_misspelt_name_gets_a_suggestion(up: Program, tmp_path: Path) -> None:
    file = tmp_path / "w.yaml"
    file.write_text(FILE)
    up.text("templates", "apply", "nightly-build", str(file))
    up.text(
        "schedules", "apply", "nightly-run", "@daily", "--template", "nightly-build", "--paused"
    )
    name = up.json("workers")[0]["name"]
    for words, said in (
        (("templates", "show", "nightly-biuld"), "template nightly-biuld does not exist; did you"),
        (("workflows", "start", "nightly-biuld"), "did you mean nightly-build?"),
        (("schedules", "show", "nightly-urn"), "did you mean nightly-run?"),
        (("schedules", "run", "nightly-urn"), "did you mean nightly-run?"),
        (("explain", f"{name}x"), f"did you mean {name}?"),
        (("workers", "drain", f"{name}x"), f"did you mean {name}?"),
    ):
        done = up(*words)
        assert (done.returncode, said in done.stderr) == (4, True), (words, done.stderr)
    up.text("schedules", "delete", "nightly-run")
    up.text("templates", "delete", "nightly-build")


def test_an_unknown_queue_or_task_that_is_close_to_a_known_one_is_warned_of(up: Program) -> None:
    up.text("queues", "pause", "overnight")
    new = up("submit", "--queue", "overnigth", "--task", "shel", "--args", "{}")
    assert new.returncode == 0, "a new name is allowed"
    assert "queue overnigth does not exist yet; did you mean overnight?" in new.stderr
    assert "no worker runs task shel; did you mean shell?" in new.stderr
    path = up("submit", "--delay", "1h", "--task", "tasks:add", "--args", "[1]")
    assert (
        """functions are run with --task python --args '{"function": "tasks:add"}'""" in path.stderr
    )
    up.text("cancel", path.stdout.strip())
    none = up("jobs", "--queue", "defualt")
    assert none.stdout == "no jobs\n"
    assert "; did you mean default?" in none.stderr
    paused = up("queues", "pause", "defualt")
    assert paused.stdout == "queue defualt is now paused\n"
    assert "queue defualt does not exist yet; did you mean default?" in paused.stderr
    assert up("queues", "resume", "defualt").stdout == "queue defualt is now open\n"
    up.text("cancel", new.stdout.strip())
    up.text("queues", "resume", "overnight")


@pytest.mark.parametrize("group", ["templates", "schedules", "workers"])
def test_remove_is_an_old_word_for_delete(up: Program, group: str) -> None:
    done = up(group, "remove", "--help")
    assert done.returncode == 0
    assert "Delete a" in done.stdout
    assert "remove" not in up.text(group, "--help")


def test_workflow_is_an_old_word_for_workflows(up: Program) -> None:
    assert up.json("workflow", "list", "--limit", "1") == up.json("workflows", "--limit", "1")
