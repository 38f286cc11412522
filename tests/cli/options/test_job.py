"""The flags of `submit` and `run`: all options of a job, and those of a command."""

from pathlib import Path

import pytest
from cyclopts import App

from windlass.cli.options.job import FLAGS, PLAIN, JobOptions, named_by_flags
from windlass.domain.job.job import KEYWORDS, JobSpec
from windlass.domain.values.errors import InvalidInput

app = App(help_flags=[])


@app.default
def described(*command: str, job: JobOptions = PLAIN) -> JobSpec:
    return job.request(command)


def read(*words: str) -> JobSpec:
    spec: JobSpec = app(list(words), exit_on_error=False, result_action="return_value")
    return spec


def test_every_option_of_a_job_has_a_flag() -> None:
    assert set(FLAGS) == set(KEYWORDS)


def test_a_command_takes_variables_inputs_and_artifacts() -> None:
    spec = read(
        "--env", "A=b=c", "--env", "B=", "--artifact", "out/*.txt", "--artifact", "log",
        "--input", "12/in/a.txt", "--input", "13/b=c/d", "--after", "13", "--", "make", "all",
    )  # fmt: skip
    assert spec.args == {
        "argv": ["make", "all"],
        "env": {"A": "b=c", "B": ""},
        "artifacts": ["out/*.txt", "log"],
        "inputs": [
            {"job": 12, "artifact": "in/a.txt"},
            {"job": 13, "artifact": "b", "path": "c/d"},
        ],
    }
    assert spec.after == (13, 12)  # an input is there when its job has completed


def test_a_local_file_is_an_input_under_its_name_or_another(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "b:c").write_text("b")
    words = [f"{tmp_path}/a.txt", f"{tmp_path}/a.txt:in/d.txt", f"{tmp_path}/b:c"]
    spec = read(*(word for text in words for word in ("--input", text)), "--", "true")
    files = [one["file"] for one in spec.args["inputs"]]
    assert [(file.path.name, file.more["path"]) for file in files] == [
        ("a.txt", "a.txt"), ("a.txt", "in/d.txt"), ("b:c", "b:c"),
    ]  # fmt: skip
    assert spec.after == ()


def test_a_flag_of_zero_counts() -> None:
    spec = read("--retries", "0", "--workflow", "0", "--", "true")
    assert (spec.retries, spec.workflow) == (0, 0)


def test_arguments_of_a_task_are_not_flags_of_a_command() -> None:
    with pytest.raises(InvalidInput, match=r"--args\.inputs"), named_by_flags():
        raise InvalidInput("jobs[0].args.inputs", "given", "nothing")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--task", "t", "--artifact", "x"), "--artifact goes with a command after --"),
        (("--args", "{}", "--", "true"), "--args goes with --task, not with a command"),
        (("--input", "out.txt", "--", "true"), "--input to be a file, FILE:NAME, or an artifact"),
        (("--input", "none:a", "--", "true"), "got none:a; there is no file none here"),
        (("--input", "/", "--", "true"), "got /; / is a directory: pack it into one file"),
        (("--env", "A", "--", "true"), "--env to be NAME=VALUE"),
        (
            ("--timeout", "0", "--", "true"),
            "--timeout to be a duration longer than 0, or none, got 0",
        ),
    ],
)
def test_what_does_not_fit_is_named_by_its_flag(words: tuple[str, ...], said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        read(*words)


@pytest.mark.parametrize(
    ("field", "flag"),
    [
        ("jobs[0].args.env.A", "--env.A"),
        ("jobs[0].args.inputs[1].path", "--input[1].path"),
        ("jobs[0].args.other", "--args.other"),
        ("jobs[0].after_any", "--after-any"),
        ("jobs.workflow", "--workflow"),
        ("jobs[0].unknown", "jobs[0].unknown"),
    ],
)
def test_errors_of_the_server_are_about_flags(field: str, flag: str) -> None:
    with pytest.raises(InvalidInput) as met, named_by_flags(is_command=True):
        raise InvalidInput(field, "else", 1, "did you mean 2?")
    assert met.value.field == flag
    assert met.value.hint == "did you mean 2?"
