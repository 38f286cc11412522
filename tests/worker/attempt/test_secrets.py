"""Declared secrets reach their jobs and nobody else: not the log, the store, other jobs."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.worker.rig import Rig, play, state_of
from windlass.domain.job.job import JobSpec
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE
from windlass.domain.values.errors import InvalidInput
from windlass.executors.loading import load_executors
from windlass.worker.attempt.secrets import Secrets, load_secrets

VALUE = "s3cr3t-of-the-fleet"
HELD = Secrets({("*", "TOKEN"): VALUE})
FUNCTIONS = "tests.executors.functions"


async def call(rig: Rig, name: str, *args: object, **fields: Any) -> int:
    body = {"function": f"{FUNCTIONS}:{name}", "args": list(args)}
    return await rig.submit(task="python", args=body, **fields)


async def nowhere_in_the_store(rig: Rig, value: str = VALUE) -> None:
    snapshot = await rig.store.snapshot()
    assert value not in repr(snapshot)
    assert value.encode() not in msgspec.json.encode(repr(snapshot))


def test_a_shell_job_gets_its_secret_and_the_log_does_not(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(secrets=HELD):
            # In two writes, so that the secret is divided.
            script = 'echo "${#TOKEN}"; printf "%s" "${TOKEN%fleet}"; printf "fleet!\\n"'
            job = await rig.submit("sh", "-c", script, secrets=("TOKEN",))
            assert state_of(await rig.ended(job)) == "completed"
            assert await rig.files.log_end(job) == f"{len(VALUE)}\n***!\n".encode()
            await nowhere_in_the_store(rig)

    play(tmp_path, scene)


def test_the_last_line_of_a_failed_program_is_quoted_without_its_secret(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(secrets=HELD):
            script = 'echo "login with $TOKEN failed"; exit 1'
            job = await rig.submit("sh", "-c", script, secrets=("TOKEN",))
            record = await rig.ended(job)
            assert record.message == "exit code 1: login with *** failed"
            await nowhere_in_the_store(rig)

    play(tmp_path, scene)


def test_a_job_that_declares_none_gets_none(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(secrets=HELD):
            job = await rig.submit("env")
            await rig.ended(job)
            log = await rig.files.log_end(job)
            # But for the one by which it asks its own agent, which opens nothing else.
            assert b"TOKEN" not in log.replace(b"WINDLASS_AGENT_TOKEN=", b"")
            assert VALUE.encode() not in log

    play(tmp_path, scene)


def test_python_functions_get_secrets_and_results_and_messages_hide_them(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        executors = load_executors(["python"])
        async with rig.agent(secrets=HELD, executors=executors, slots=1):
            for name in ("tell_secret", "tell_secret_async"):
                job = await call(rig, name, "TOKEN", secrets=("TOKEN",))
                record = await rig.ended(job)
                assert record.result == b'{"length":%d,"***":["***"],"text":"<***>"}' % len(VALUE)
                assert await rig.files.log_end(job) == b"it is ***\n"
            failed = await rig.ended(await call(rig, "fail_with_secret", secrets=("TOKEN",)))
            assert FAILURE_BY_CODE[failed.failure] == "execution"
            assert failed.message == "ValueError: refused ***"
            assert b'"type":"ValueError","message":"refused ***"' in (failed.result or b"")
            napped = await rig.ended(
                await call(rig, "nap_between_steps", "TOKEN", secrets=("TOKEN",))
            )
            assert napped.result == b'[2,"***"]'
            # The process is used again, and knows nothing any more.
            after = await rig.ended(await call(rig, "variables"))
            assert b"TOKEN" not in (after.result or b"")
            undeclared = await rig.ended(await call(rig, "tell_secret", "TOKEN"))
            assert "one that the job declares" in (undeclared.message or "")
            await nowhere_in_the_store(rig)
            assert VALUE not in repr(rig.files.told)

    play(tmp_path, scene)


def test_only_a_worker_that_has_the_secret_is_given_the_job(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent("without"):
            job = await rig.submit("true", secrets=("TOKEN",))
            await rig.ended(await rig.submit("true"))
            assert (await rig.record(job)).facts.is_open
            async with rig.agent("with", secrets=HELD) as agent:
                record = await rig.ended(job)
                assert (state_of(record), record.facts.worker) == ("completed", agent.worker)

    play(tmp_path, scene)


def test_a_secret_of_one_namespace_is_not_given_to_another(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        own = Secrets({("*", "TOKEN"): "for-everyone", ("blue", "TOKEN"): VALUE,
                       ("blue", "KEY"): "blue-only"})  # fmt: skip
        async with rig.agent(secrets=own, namespaces=("*",)):
            foreign = await rig.submit("true", secrets=("KEY",), namespace="red")
            script = 'echo "${#TOKEN} ${#KEY}"'
            blue = await rig.submit("sh", "-c", script, secrets=("TOKEN", "KEY"), namespace="blue")
            red = await rig.submit("sh", "-c", script, secrets=("TOKEN",), namespace="red")
            await rig.ended(blue)
            await rig.ended(red)
            assert await rig.files.log_end(blue) == f"{len(VALUE)} 9\n".encode()
            assert await rig.files.log_end(red) == b"12 0\n"
            assert (await rig.record(foreign)).facts.is_open

    play(tmp_path, scene)


def test_an_agent_refuses_a_secret_that_the_server_takes_it_to_have(tmp_path: Path) -> None:
    async def scene(rig: Rig) -> None:
        async with rig.agent(secrets=Secrets(), metadata={"secret:TOKEN": ["*"]}):
            job = await rig.submit("true", secrets=("TOKEN",))
            await rig.store_says(job, lambda record: record.facts.returned > 0)
            assert (await rig.record(job)).facts.is_open

    play(tmp_path, scene)


@pytest.mark.parametrize(
    ("fields", "where"),
    [
        ({"secrets": ("not a name",)}, "job.secrets[0]"),
        ({"secrets": ("WINDLASS_TOKEN",)}, "job.secrets[0]"),
        ({"secrets": ("A",), "namespace": "red,blue"}, "job.namespace"),
        ({"secrets": ("A",), "namespace": "*"}, "job.namespace"),
        ({"secrets": tuple(f"A{n}" for n in range(101))}, "job.secrets"),
    ],
)
def test_what_cannot_be_a_secret_is_refused_at_the_door(
    tmp_path: Path, fields: dict[str, Any], where: str
) -> None:
    async def scene(rig: Rig) -> None:
        with pytest.raises(InvalidInput) as refused:
            await rig.engine.submit([JobSpec(task="shell", args={"argv": ["true"]}, **fields)])
        assert refused.value.field == where.replace("job", "jobs[0]")

    play(tmp_path, scene)


def test_secrets_are_read_from_files_and_variables(tmp_path: Path) -> None:
    folder = tmp_path / "secrets"
    (folder / "blue").mkdir(parents=True)
    (folder / "..version").mkdir()
    (folder / "ONE").write_text("from the folder\n")
    (folder / "blue" / "TWO").write_text("line\nline\n")
    (tmp_path / "file").write_text("from a file")
    environ = {"WINDLASS_SECRET_THREE": "from a variable", "HOME": "/root"}
    found = load_secrets(environ, [f"red/FOUR=@{tmp_path / 'file'}"], folder)
    assert found.metadata == {
        "secret:ONE": ["*"],
        "secret:TWO": ["blue"],
        "secret:THREE": ["*"],
        "secret:FOUR": ["red"],
    }
    assert found.pick(("ONE", "TWO", "THREE"), "blue") == {
        "ONE": "from the folder",
        "TWO": "line\nline",
        "THREE": "from a variable",
    }
    assert found.missing(("ONE", "TWO", "FOUR"), "red") == ["TWO"]
    assert "from" not in repr(found)


@pytest.mark.parametrize("given", ["NAME=value-in-the-open", "NAME", "NAME=@/no/such/file"])
def test_a_secret_on_the_command_line_is_refused_and_not_repeated(given: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        load_secrets({}, [given])
    assert "value-in-the-open" not in str(refused.value)


def test_a_secret_of_several_lines_is_hidden_line_by_line() -> None:
    mask = Secrets({("*", "PEM"): "-----BEGIN-----\nabcdefghijkl\n"}).mask(("PEM",), "default")
    assert mask.text("x abcdefghijkl y") == "x *** y"
    assert mask.value({"a": [1, None, True, "abcdefghijkl"]}) == {"a": [1, None, True, "***"]}


def test_a_number_that_is_a_secret_is_hidden() -> None:
    mask = Secrets({("*", "PIN"): "48151623"}).mask(("PIN",), "default")
    assert mask.value([48151623, 48]) == ["***", 48]
