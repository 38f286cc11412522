"""What jobs see of the environment of their worker, and what they never see."""

from pathlib import Path

import pytest

from windlass.domain.values.errors import InvalidInput
from windlass.worker.agent.environment import (
    job_environment,
    named_variables,
    parse_env_file,
    without_own,
)

ENVIRON = {
    "PATH": "/bin",
    "LC_ALL": "C",
    "WINDLASS_TOKEN": "secret",
    "WINDLASS_STORE": "postgresql://u:secret@h/db",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "DATABASE_URL": "secret",
    "DJANGO_SETTINGS_MODULE": "shop.settings",
    "DJANGO_DEBUG": "1",
}


def test_jobs_see_a_short_list_and_no_credentials() -> None:
    given = {"CCACHE_DIR": "/cache", "WINDLASS_TOKEN": "secret"}
    assert job_environment(ENVIRON, {"MARK": "x"}, given) == {
        "PATH": "/bin",
        "LC_ALL": "C",
        "CCACHE_DIR": "/cache",
        "MARK": "x",
    }


def test_a_program_keeps_its_own_variables_and_none_of_windlass() -> None:
    assert without_own(ENVIRON).keys() == {
        "PATH", "LC_ALL", "AWS_SECRET_ACCESS_KEY", "DATABASE_URL", "DJANGO_SETTINGS_MODULE",
        "DJANGO_DEBUG",
    }  # fmt: skip


def test_patterns_pass_variables_but_never_those_of_windlass() -> None:
    assert named_variables(ENVIRON, patterns=["DJANGO_*"]).keys() == {
        "DJANGO_SETTINGS_MODULE",
        "DJANGO_DEBUG",
    }
    everything = named_variables(ENVIRON, patterns=["*", "WINDLASS_*"])
    assert not [name for name in everything if name.startswith("WINDLASS_")]


def test_what_is_named_counts_more_than_a_file_and_a_file_more_than_a_pattern(
    tmp_path: Path,
) -> None:
    file = tmp_path / "env"
    file.write_text("DJANGO_DEBUG=file\nDATABASE_URL\nA=1\n")
    found = named_variables(ENVIRON, ["A=2", "B=x=y"], file, ["DJANGO_D*"])
    assert found == {"DJANGO_DEBUG": "file", "DATABASE_URL": "secret", "A": "2", "B": "x=y"}


@pytest.mark.parametrize("word", ["WINDLASS_TOKEN", "WINDLASS_TOKEN=x", "WINDLASS_STORE", "NONE"])
def test_a_variable_of_windlass_or_one_that_is_not_set_is_refused(
    word: str, tmp_path: Path
) -> None:
    with pytest.raises(InvalidInput):
        named_variables(ENVIRON, [word])
    file = tmp_path / "env"
    file.write_text(f"{word}\n")
    with pytest.raises(InvalidInput):
        named_variables(ENVIRON, file=file)


@pytest.mark.parametrize(
    "bad", ["hunter2", "1A=hunter2", "A='hunter2", 'A="hunter2\\', "A-B=hunter2"]
)
def test_an_error_in_a_file_names_the_line_and_shows_no_value(bad: str) -> None:
    with pytest.raises(InvalidInput) as error:
        parse_env_file(f"OK=1\n{bad} x\n", "shop.env")
    assert "shop.env, line 2" in error.value.message
    assert "hunter2" not in error.value.message


def test_a_value_may_be_quoted() -> None:
    text = 'A= plain # not a comment \nexport B=\'a "b"\'\nC="x\\n\\"y\\" \\$z"\nD=\n'
    assert dict(parse_env_file(text)) == {
        "A": "plain # not a comment",
        "B": 'a "b"',
        "C": 'x\n"y" $z',
        "D": "",
    }


def test_a_missing_file_is_an_error_that_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match="nowhere"):
        named_variables(ENVIRON, file=Path("nowhere"))
