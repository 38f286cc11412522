"""What commands say about wrong input: the field or flag, what was expected, and what came."""

from pathlib import Path

from tests.cli.program import Program

SHELL = ("submit", "--task", "shell", "--args")
WRONG = [
    (("show", "0"), "expected job to be an integer >= 1, got 0"),
    (("workflows", "show", "0"), "expected workflow to be an integer >= 1, got 0"),
    (("show",), "windlass: `windlass show` needs JOB\n"),
    (("submit", "--queue"), "windlass: --queue needs a value\n"),
    (("show", "x"), "expected JOB to be a whole number, got x"),
    (("jobs", "--limit", "0"), 'Invalid value "0" for --limit. Must be 1 or more.'),
    (("submit", "--timeout", "0", "--", "true"),
     "expected --timeout to be a duration longer than 0, or none, got 0"),
    (("submit", "--retries", "-1", "--", "true"),
     "expected --retries to be a whole number of 0 or more, got -1"),
    (("submit", "--workflow", "999999", "--", "true"),
     "expected --workflow to be the id of an existing workflow, got 999999"),
    (("submit", "--resources", "cpus=x", "--", "true"),
     "expected --resources.cpus to be a whole number of 0 or more, got x"),
    (("run", "--requires", "memory>=x", "--", "true"), "expected --requires memory to be a size"),
    (("run", "--priority", "urgent", "--", "true"), "expected --priority to be high, medium, low"),
    (("submit", "--count", "0", "--", "true"), "expected --count to be from 1 to 100,000, got 0"),
    (("submit", "--task", "shell"), "expected --args.argv to be given, got nothing"),
    ((*SHELL, "{}"), "expected --args.argv to be given, got nothing"),
    ((*SHELL, '{"argv": "x"}'), "expected --args.argv to be a list, got text"),
    ((*SHELL, '{"argv": ["x"], "envv": {}}'), "; did you mean env?"),
    (("submit", "--task", "ffmpeg", "--args", "{}"), "expected --args.input"),
    (("schedules", "apply", "s", "@daily", "--jobs", '[{"task": 1}]'),
     "expected --jobs[0].task to be text, got a whole number"),
    (("submit",), "windlass: nothing to run: give a command after --, or --task\n"),
    (("cancel",), "windlass: no jobs are selected: give job ids, or --where, --state, "),
    (("cancel", "1", "--dead"), "windlass: job ids and filters exclude each other"),
    (("cancel", "--where", "batch"), "expected --where to be NAME=VALUE"),
    (("worker", "--slots", "0"), "expected --slots to be at least 1, got 0"),
    (("worker", "--store", "sqlite:///x"), "windlass: --store needs --blobs"),
    (("server", "--store", "x", "--blobs", "x", "--tls-key", "x"), "--tls-key needs --tls-cert"),
    (("up", "--port", "1", "--listen", "a:2"), "--port and --listen exclude each other"),
    (("workers", "code", "--expires", "0"), "expected --expires to be a duration longer than 0"),
    (("tokens", "create", "t", "--expires", "0"), "expected --expires to be a duration longer"),
]  # fmt: skip


def test_what_is_wrong_is_named_with_what_was_expected(up: Program) -> None:
    for words, said in WRONG:
        done = up(*words)
        assert done.returncode == 2, (words, done.stdout)
        assert said in done.stderr, (words, done.stderr)


def test_run_does_not_say_where_its_job_is_in_a_list(up: Program) -> None:
    holder = up.text("submit", "--key", "one", "--delay", "1h", "--", "true").strip()
    other = up("run", "--key", "one", "--delay", "1h", "--", "false")
    up("cancel", holder)
    assert other.stderr.startswith("windlass: key 'one' is used by job"), other.stderr


def test_a_program_that_is_missing_is_named(up: Program) -> None:
    for program in ("no-such-program", "./no-such-program"):
        done = up("run", "--", program)
        assert (done.returncode, program in done.stderr) == (1, True), done.stderr


def test_a_dry_run_checks_reactions_and_flags_as_a_submission_does(
    up: Program, tmp_path: Path
) -> None:
    file = tmp_path / "w.yaml"
    lines = "name: w\njobs: {{}}\non_failure:\n- retry:\n    delays: [5m, {}]\n"
    file.write_text(lines.format("1w"))
    assert "nothing was submitted" in up.text("workflows", "submit", str(file), "--dry-run")
    urgent = up("workflows", "submit", str(file), "--dry-run", "--priority", "urgent")
    assert (urgent.returncode, "--priority" in urgent.stderr) == (2, True), urgent.stderr
    file.write_text(lines.format("1y"))
    for words in ((), ("--dry-run",)):
        done = up("workflows", "submit", str(file), *words)
        assert done.returncode == 2
        assert f"{file}:5: expected on_failure[0].retry.delays[1] to be a duration" in done.stderr
