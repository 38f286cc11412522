"""The Slurm provider with sbatch, squeue and scancel, against a real cluster on loopback."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.providers.orders import OWNER, order
from tests.support.debian import missing_reason
from tests.support.slurm import Slurm, start_slurm
from tests.support.waiting import until
from windlass.domain.pools.pools import Pool
from windlass.domain.values.errors import InvalidInput
from windlass.ports.provider import Machine, Owner, ProviderFault
from windlass.providers.slurm import SlurmProvider

LIMIT_S = 60
MISSING = missing_reason("slurmctld")

needs_slurm = pytest.mark.skipif(MISSING is not None, reason=MISSING or "")


@pytest.fixture(scope="module")
def running() -> Iterator[Slurm]:
    cluster = start_slurm()
    yield cluster
    cluster.stop()


@pytest.fixture
def cluster(running: Slurm, monkeypatch: pytest.MonkeyPatch) -> Slurm:
    monkeypatch.setenv("SLURM_CONF", running.conf)
    return running


def provider(folder: Path, **options: object) -> SlurmProvider:
    """Jobs that do not become a worker but wait; what they were started with is written."""
    bin_folder = folder / "bin"
    bin_folder.mkdir(exist_ok=True)
    program = bin_folder / "windlass"
    program.write_text(f'#!/bin/sh\nenv > "{folder}/$SLURM_JOB_NAME.env"\nexec sleep 600\n')
    program.chmod(0o755)
    given = {
        "setup": f"export PATH={bin_folder}:/usr/bin:/bin", "chdir": str(folder),
        "output": "/dev/null", "partition": "main",
    }  # fmt: skip
    return SlurmProvider(Pool(name="build", provider="slurm", options={**given, **options}))


@needs_slurm
def test_jobs_are_submitted_found_and_canceled(cluster: Slurm, tmp_path: Path) -> None:
    async def runs() -> bool:
        return "build-1.env" in os.listdir(tmp_path)

    async def play() -> None:
        made = provider(tmp_path)
        assert await made.find(OWNER) == []
        machine = await made.launch(order())
        assert machine.id.isdigit()
        assert await made.find(OWNER) == [machine]
        assert await made.find(Owner(OWNER.installation, "other")) == []
        assert await made.find(Owner("another", OWNER.pool)) == []
        await until("it runs", runs, LIMIT_S)
        await made.terminate([machine])

        async def ended() -> bool:
            return not await made.find(OWNER)

        await until("it ends", ended, LIMIT_S)
        await made.terminate([machine, Machine("x", "99999")])

    asyncio.run(play())
    env = (tmp_path / "build-1.env").read_text().splitlines()
    assert "WINDLASS_SERVER=http://127.0.0.1:9" in env
    assert "WINDLASS_CODE=enrol_secret" in env


@needs_slurm
def test_a_token_is_one_job(cluster: Slurm, tmp_path: Path) -> None:
    async def play() -> None:
        machine = await provider(tmp_path).launch(order("build-7"))
        assert await provider(tmp_path).launch(order("build-7", code="enrol_other")) == machine
        assert cluster.names().count("build-7") == 1
        await provider(tmp_path).terminate([machine])

    asyncio.run(play())


@needs_slurm
def test_a_refusal_is_told_in_slurms_words(cluster: Slurm, tmp_path: Path) -> None:
    with pytest.raises(ProviderFault, match=r"sbatch ended with 1: .*invalid partition"):
        asyncio.run(provider(tmp_path, partition="nowhere").launch(order()))


def test_a_worker_whose_time_is_limited_is_asked_to_end_before(tmp_path: Path) -> None:
    """Slurm does so at its leisure, within a minute: here the words are looked at alone."""
    for name, line in (("squeue", ":"), ("sbatch", 'echo "$@" > "$0.words"; echo 7')):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{line}\n")
        program.chmod(0o755)

    def words(**options: object) -> list[str]:
        given = {"programs": str(tmp_path), **options}
        made = SlurmProvider(Pool(name="p", provider="slurm", options=given))
        assert asyncio.run(made.launch(order())).id == "7"
        return (tmp_path / "sbatch.words").read_text().split()

    assert {"--time=1:00:00", "--signal=B:TERM@90"} <= set(words(time="1:00:00"))
    assert not any(word.startswith("--signal") for word in words())
    own = words(time="60", arguments=["--signal=B:TERM@300"])
    assert own[-1] == "--signal=B:TERM@300", "the last one holds"


def test_missing_programs_are_named(tmp_path: Path) -> None:
    options = {"programs": str(tmp_path)}
    made = SlurmProvider(Pool(name="p", provider="slurm", options=options))
    with pytest.raises(ProviderFault, match=r"cannot run .*squeue: No such file"):
        asyncio.run(made.find(OWNER))


def test_options_are_refused_by_name() -> None:
    with pytest.raises(InvalidInput) as error:
        SlurmProvider(Pool(name="p", provider="slurm", options={"nodes": 3}))
    assert error.value.field == "options.nodes"
