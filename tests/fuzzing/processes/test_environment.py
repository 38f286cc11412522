"""What programs of a repository get of the environment: no credentials."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzzing.support.commands import Commands
from tests.fuzzing.support.scripted_solver import World
from tests.support.plain_user import as_user
from tests.support.running import run
from windlass_fuzz.buckets.layout import build_log_key
from windlass_fuzz.processes.environment import inherited_environment

HIDDEN = (
    "AWS_SECRET_ACCESS_KEY", "AWS_ACCESS_KEY_ID", "AWS_PROFILE", "GITHUB_TOKEN", "GH_TOKEN",
    "CI_JOB_TOKEN", "SMTP_PASSWORD", "ALARM_SECRET_1", "WINDLASS_TOKEN", "WINDLASS_SERVER",
    "ACTIONS_ID_TOKEN_REQUEST_URL", "GITHUB_ENV", "GITHUB_PATH", "token", "OPENAI_API_KEY",
)  # fmt: skip
SHOWN = ("CC", "CFLAGS", "LD_LIBRARY_PATH", "GITHUB_SHA", "TOKENIZER", "KEYBOARD", "MONKEY_KEYS")
PRINTS = "#!/bin/sh\nenv\nexit 1\n"
# Looks at the program that runs the build.
LOOKS = """#!/bin/sh
cat /proc/$PPID/environ && echo open || echo closed
tr '\\0' ' ' < /proc/$PPID/cmdline
exit 1
"""


@pytest.fixture(autouse=True)
def full_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*HIDDEN, *SHOWN):
        monkeypatch.setenv(name, f"value-of-{name}")


def test_what_looks_like_a_credential_is_not_inherited() -> None:
    given = inherited_environment()
    assert set(given).isdisjoint(HIDDEN)
    assert {name: given[name] for name in SHOWN} == {name: f"value-of-{name}" for name in SHOWN}


def test_a_credential_that_builds_need_is_passed_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_FUZZ_PASS_ENV", "SMTP_PASSWORD, GH_TOKEN")
    given = inherited_environment()
    assert set(HIDDEN) & set(given) == {"SMTP_PASSWORD", "GH_TOKEN"}


def test_a_build_does_not_see_our_credentials(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("curious", build_sh=PRINTS)
    run(world.enqueue(commit))
    assert run(world.build()).outcome == "failed"
    stored = run(world.bucket.get(build_log_key("scripted", commit)))
    assert stored is not None
    printed = stored.body.decode()
    assert "CC=value-of-CC" in printed
    assert "WINDLASS_FUZZ_KIND=" in printed
    assert not [name for name in HIDDEN if f"value-of-{name}\n" in printed]


def test_a_build_cannot_read_the_environment_of_the_program_above_it(tmp_path: Path) -> None:
    world = World(tmp_path)
    commit = world.commit("curious", build_sh=LOOKS)
    run(world.enqueue(commit))
    commands = Commands(world)
    done = subprocess.run(
        [sys.executable, "-m", "windlass", "fuzz", "builder", "scripted"], cwd=tmp_path,
        env=commands.env, capture_output=True, text=True, check=False, **as_user(),
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    printed = commands.run("builder", "log", "scripted", commit)[1]
    assert "fuzz builder scripted" in printed, "it is the right program"
    assert "closed" in printed
    assert "value-of-GITHUB_TOKEN" not in printed
