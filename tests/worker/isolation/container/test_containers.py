"""Jobs in containers of a real rootless engine, run by one agent of an ordinary user.

All jobs run once, side by side; each test looks at one of them.
"""

import json
import signal
import tempfile
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest

from tests.support.containers import IMAGE, RootlessPodman, image_archive
from tests.support.forms import LONG, by_form
from tests.support.registry import Registry
from tests.support.specs import spec_of
from tests.worker.bridge import Bridge
from tests.worker.isolation.test_wait_status import TOLD, name_of
from tests.worker.rig import MAX_TEST_S, Rig, play, state_of
from windlass.domain.job.forms import JobLimits
from windlass.domain.lifecycle.failures import FAILURE_BY_CODE
from windlass.domain.lifecycle.workflow_state import Details
from windlass.domain.rows.records import JobRecord
from windlass.engine.submit.submission import WorkflowSpec

PASSWORD: Final = "hunter2-of-the-registry"
TOKEN: Final = "hunter2-in-one-line"
KEY: Final = "-----BEGIN KEY-----\nhunter2-in-lines\n-----END KEY-----"
IN_ORDER: Final = 'for i in $(seq 40); do echo "out $i"; echo "err $i" >&2; done'
CHILD: Final = (
    'body=\'{"jobs":[{"task":"other","args":null}]}\'; '
    'printf "POST /api/v1/jobs HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n'
    "Authorization: Bearer $WINDLASS_AGENT_TOKEN\\r\\nContent-Type: application/json\\r\\n"
    'Content-Length: ${#body}\\r\\n\\r\\n$body" | say $WINDLASS_AGENT'
)
FILES: Final = (
    "cat given > out.txt; mkdir d; echo theirs > d/x; chown -R 5:5 d; chmod 700 d; chmod 600 d/x"
)


# Each of its processes stays below the limit, all together do not.
HUNGRY: Final = "for i in 1 2 3; do dd if=/dev/zero bs=40M count=1 | sleep 60 & done; wait"
MANY: Final = "for i in $(seq 10); do sleep 60 & done; wait"
LARGE: Final = "head -c 8m /dev/zero > large; sleep 60"


# Every way to end in the long form; each costs a container.
CODES: Final = range(256) if LONG else (125, 126, 127, 255)
# The shell of the image ignores SIGQUIT.
SIGNALS: Final = (
    sorted(TOLD - {signal.SIGQUIT}) if LONG else (signal.SIGHUP, signal.SIGXCPU, signal.SIGRTMIN)
)


class Ran(NamedTuple):
    """How a job ended, and what it printed in its last attempt."""

    record: JobRecord
    log: str

    @property
    def end(self) -> tuple[str, str | None, int | None]:
        failure = FAILURE_BY_CODE[self.record.failure]
        return state_of(self.record), failure and failure.value, self.record.exit_code


class Results(NamedTuple):
    """All jobs by name, and what else there is to see."""

    jobs: dict[str, Ran]
    artifacts: dict[tuple[int, str], bytes]
    metadata: dict[str, Any]
    left: list[str]  # containers
    scratch: list[Path]
    others: int  # jobs that a container has submitted


def _jobs(registry: Registry) -> dict[str, dict[str, Any]]:
    """What to submit: the words of the program, and options of the job."""
    shell: dict[str, dict[str, Any]] = {
        "exit": {"line": "exit 7"},
        "signal": {"line": "kill -9 $$"},
        "like a signal": {"line": "exit 137", "retries": 0},
        "connection refused": {"line": "exit 145", "retries": 0},
        "terminated": {"line": "kill -15 $$", "retries": 0},
        "order": {"line": IN_ORDER},
        "flood": {"line": "head -c 1000000 /dev/zero | tr '\\0' x"},
        "files": {"line": FILES, "artifacts": ["out.txt", "d/*"], "inputs": True},
        "stdin": {"line": "cat", "stdin": "spoken\n"},
        "who": {"line": "id -u; id -g; pwd; cat /proc/self/status"},
        "network": {"line": "ls /sys/class/net"},
        "host": {"line": "cat /proc/net/dev", "network": "host"},
        "variables": {
            "line": 'printf "%s|" "$LD_PRELOAD" "$CONTAINERS_CONF" "$LINES" "$TOKEN" "$KEY"',
            "env": {"LD_PRELOAD": "/nowhere.so", "CONTAINERS_CONF": "/nowhere", "LINES": "a\nb"},
            "secrets": ("TOKEN", "KEY"),
        },
        "environment": {"line": "env"},
        "memory": {"line": HUNGRY, "limits": JobLimits(memory="60MiB"), "retries": 0},
        "processes": {"line": MANY, "limits": JobLimits(processes=5), "retries": 0},
        "cpu": {"line": "while :; do :; done", "limits": JobLimits(cpu_time=1), "retries": 0},
        "disk": {"line": LARGE, "limits": JobLimits(disk="2MiB"), "retries": 0},
        "missing program": {"argv": ["nosuch"]},
        "never": {"line": "true", "image": "localhost/nosuch:1", "pull": "never"},
        "unknown": {
            "line": "true", "image": f"{registry.host}/library/box:2",
            "registry_secret": "REGISTRY",
        },
        "denied": {"line": "true", "image": f"{registry.host}/library/box:3"},
        "fetched": {"line": "id -u", "image": registry.image, "registry_secret": "REGISTRY"},
    }  # fmt: skip
    shell |= {f"code {code}": {"line": f"exit {code}", "retries": 0} for code in CODES}
    shell |= {f"signal {n}": {"line": f"kill -{n} $$", "retries": 0} for n in map(int, SIGNALS)}
    return {
        name: {
            "argv": ["sh", "-c", job.pop("line", "")], "image": IMAGE, "network": "none", **job
        }
        for name, job in shell.items()
    }  # fmt: skip


@pytest.fixture(scope="module")
def results(podman: RootlessPodman) -> Results:
    """Runs all jobs."""
    registry = Registry(image_archive(), f"robot:{PASSWORD}")
    podman.registries.write_text(f'[[registry]]\nlocation = "{registry.host}"\ninsecure = true\n')
    podman.registries.chmod(0o644)
    folder = podman.give(Path(tempfile.mkdtemp(dir=podman.folder)))
    found: list[Results] = []
    environ = {
        "WINDLASS_CONTAINER_ENGINE": "podman",
        "WINDLASS_SECRET_TOKEN": TOKEN,
        "WINDLASS_SECRET_KEY": KEY,
        "WINDLASS_SECRET_REGISTRY": f"robot:{PASSWORD}",
    }

    async def scene(rig: Rig) -> None:
        rig.files.artifacts[1, "given"] = b"from before\n"
        first = await rig.submit("true", task="nothing")
        ids = {}
        for name, job in _jobs(registry).items():
            if job.pop("inputs", False):
                job["inputs"] = [{"job": first, "artifact": "given"}]
            ids[name] = await rig.submit(*job.pop("argv"), **job)
        ids["child"] = await _submit_in_workflow(rig)
        bridge = Bridge(rig.gateway, folder / "adding")
        await bridge.start()
        async with rig.agent_process(user=podman, environ=environ, slots=4, bridge=bridge):
            records = {name: await rig.ended(job) for name, job in ids.items()}
            logs = {job: await _log(rig, job) for job in ids.values()}
            snapshot = await rig.store.snapshot()
            left = podman.containers()
        await bridge.close()
        found.append(
            Results(
                {name: Ran(records[name], logs[job]) for name, job in ids.items()},
                rig.files.artifacts,
                json.loads(snapshot.workers[0].dynamic),
                left,
                [path for path in (folder / "w/scratch").iterdir() if any(path.iterdir())],
                sum(b'"task":"other"' in record.spec for record in snapshot.jobs),
            )
        )

    try:
        play(folder, scene, most_s=by_form(1, 10) * MAX_TEST_S)
    finally:
        registry.close()
    return found[0]


async def _submit_in_workflow(rig: Rig) -> int:
    job = spec_of(task="shell", args={"argv": ["sh", "-c", CHILD]}, image=IMAGE, network="none")
    workflow = WorkflowSpec(name="w", namespace="default", details=Details())
    return (await rig.engine.submit([job], workflow)).ids[0]


async def _log(rig: Rig, job: int) -> str:
    return (await rig.files.log_end(job)).decode() if (job, 1) in rig.files.logs else ""


def test_exit_codes_and_signals_are_those_of_the_program(results: Results) -> None:
    assert results.jobs["exit"].end == ("failed", "execution", 7)
    assert results.jobs["signal"].end == ("failed", "execution", 137)
    assert results.jobs["signal"].record.message == "killed by SIGKILL"
    told = ("like a signal", "connection refused", "terminated")
    assert [results.jobs[name].record.message for name in told] == [
        "exit code 137", "exit code 145", "killed by SIGTERM",
    ]  # fmt: skip


def test_every_exit_code_and_every_signal_is_told_apart(results: Results) -> None:
    def told(name: str) -> tuple[int | None, str | None]:
        record = results.jobs[name].record
        return record.exit_code, record.message

    codes = {code: told(f"code {code}") for code in CODES}
    assert codes == {code: (code, f"exit code {code}" if code else None) for code in CODES}
    signals = {int(number): told(f"signal {int(number)}") for number in SIGNALS}
    assert signals == {
        number: (128 + number, f"killed by {name_of(number)}") for number in map(int, SIGNALS)
    }


def test_both_streams_arrive_in_order(results: Results) -> None:
    expected = "".join(f"out {number}\nerr {number}\n" for number in range(1, 41))
    assert results.jobs["order"].log == expected


def test_a_megabyte_of_output_is_kept(results: Results) -> None:
    assert results.jobs["flood"].log == "x" * 1_000_000


def test_inputs_are_readable_and_files_of_other_users_can_be_kept(results: Results) -> None:
    job = results.jobs["files"]
    assert job.end == ("completed", None, 0), job
    number = job.record.facts.id
    assert results.artifacts[number, "out.txt"] == b"from before\n"
    assert results.artifacts[number, "d/x"] == b"theirs\n"


def test_a_container_submits_jobs_through_the_agent(results: Results) -> None:
    assert "201" in results.jobs["child"].log.splitlines()[0]
    assert results.others == 1


def test_a_program_reads_its_stdin(results: Results) -> None:
    assert results.jobs["stdin"].log == "spoken\n"


def test_a_program_is_root_in_its_container_and_gains_no_rights(results: Results) -> None:
    uid, gid, folder, *status = results.jobs["who"].log.splitlines()
    assert (uid, gid, folder) == ("0", "0", "/scratch")
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status


def test_a_job_is_cut_off_from_the_network_or_has_that_of_the_worker(results: Results) -> None:
    assert results.jobs["network"].log.split() == ["lo"]
    ours = [line.split(":")[0] for line in Path("/proc/net/dev").read_text().splitlines()[2:]]
    theirs = [line.split(":")[0] for line in results.jobs["host"].log.splitlines()[2:]]
    assert theirs == ours


def test_variables_of_a_job_reach_its_program_and_not_the_engine(results: Results) -> None:
    job = results.jobs["variables"]
    assert job.end == ("completed", None, 0), job
    preload, conf, lines, token, key, _ = job.log.split("|")
    assert (preload, conf, lines) == ("/nowhere.so", "/nowhere", "a\nb")
    assert "hunter2" not in token + key  # masked
    assert token
    assert key


def test_nothing_of_the_workers_environment_is_in_a_container(results: Results) -> None:
    names = {line.partition("=")[0] for line in results.jobs["environment"].log.splitlines()}
    assert {"WINDLASS_JOB", "WINDLASS_AGENT"} <= names
    allowed = {"HOSTNAME", "SHLVL", "HOME", "TERM", "PATH", "PWD", "container"}
    assert {name for name in names if not name.startswith("WINDLASS_")} <= allowed
    assert not any(name.startswith("WINDLASS_SECRET") or name.endswith("KEEPER") for name in names)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("memory", "out of memory: the program used more than its limit of 60 MiB"),
        ("processes", "more processes than its limit of 5"),
        ("cpu", "CPU time over its limit of 1 s"),
        ("disk", "disk use over its limit of 2 MiB"),
    ],
)
def test_limits_hold_where_the_engine_enforces_none(
    results: Results, name: str, reason: str
) -> None:
    job = results.jobs[name]
    assert job.end[:2] == ("failed", "resource"), job
    assert job.record.message == reason


def test_a_program_that_is_not_in_the_image_is_not_tried_again(results: Results) -> None:
    job = results.jobs["missing program"]
    assert job.end == ("failed", "configuration", None)
    assert job.record.facts.attempt == 1
    assert "nosuch" in str(job.record.message)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("never", "image localhost/nosuch:1 is not on this worker, and pull is never"),
        ("unknown", "manifest unknown"),
        ("denied", "unauthorized"),
    ],
)
def test_an_image_that_cannot_be_had_ends_the_job(results: Results, name: str, reason: str) -> None:
    job = results.jobs[name]
    assert job.end == ("failed", "configuration", None), job
    assert job.record.facts.attempt == 1
    assert reason in str(job.record.message)


def test_a_secret_opens_a_registry_and_its_image_does_not_choose_the_user(results: Results) -> None:
    job = results.jobs["fetched"]
    assert job.end == ("completed", None, 0), job
    assert job.log.splitlines()[-1] == "0"


def test_a_worker_tells_its_engine(results: Results) -> None:
    told = results.metadata
    assert told["container:engine"] == "podman"
    assert told["container:rootless"] is True
    assert "container" in told["isolation"]


def test_nothing_is_left(results: Results) -> None:
    assert results.left == []
    assert results.scratch == []
