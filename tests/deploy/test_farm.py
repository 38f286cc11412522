"""Farms as `windlass init farm` writes them: their guide is followed, their units are checked."""

import json
import re
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.cli.program import run_here
from tests.deploy.machines import WINDLASS, Machine, blocks, wait_until
from tests.support.debian import missing_reason
from tests.support.loopback import free_port
from tests.support.postgres import PostgresServer
from tests.support.s3 import S3Server
from windlass.cli.commands.start.init import FILES

NEEDED = ("haproxy", "promtool", "openssl")
MISSING = next(filter(None, map(missing_reason, NEEDED)), None)
JOBS = 120


def write_farm(folder: Path, kind: str, *words: str) -> str:
    """Writes the files of a farm; returns its guide."""
    done = run_here(("init", "farm", str(folder), "--kind", kind, *words), {"PATH": "/usr/bin"})
    assert done.returncode == 0, done.stderr
    return (folder / "README.md").read_text()


class Site:
    """The machines of a farm, by where the guide sends its reader."""

    def __init__(self, places: dict[str, list[Machine]], port: int) -> None:
        self.places = places
        self.port = port
        self.said: list[str] = []

    @property
    def desk(self) -> Machine:
        return self.places["where the files are"][0]

    def follow(self, page: str) -> Iterator[str]:
        """Carries out a page block by block; yields the commands of each, once they have run."""
        for where, commands in blocks(page):
            for machine in self.places[where]:
                if machine is not self.desk:
                    machine.take(*self.desk.home.iterdir())
                self.said.append(machine.run(commands))
                if machine is not self.desk:
                    self.desk.take(*machine.home.glob("admin-token"))
            if "restart" in commands:
                wait_until("the farm answers", self._is_ready)
            yield commands

    def _is_ready(self) -> bool:
        """Returns whether the farm answers at its address."""
        context = ssl.create_default_context(cafile=self.desk.home / "farm" / "ca.pem")
        address = f"https://localhost:{self.port}/readyz"
        try:
            with urllib.request.urlopen(address, context=context, timeout=10) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False


SUBMIT = f"""python -c "
import windlass
from windlass.domain.job.job import JobSpec
with windlass.Client() as client:
    client.submit_many([JobSpec(task='shell', args={{'argv': ['sleep', '0.3']}})] * {JOBS})
"
"""


def count(desk: Machine, state: str) -> int:
    """Returns how many jobs are in a state."""
    shown = desk.run(f"windlass jobs --state {state} --limit 1000 --json")
    return len(json.loads(shown))


@pytest.mark.skipif(MISSING is not None, reason=MISSING or "")
def test_the_guide_of_two_servers_leads_to_a_farm_that_survives_its_upgrade(
    tmp_path: Path, postgres_server: PostgresServer, s3_server: S3Server
) -> None:
    ports = [free_port() for _ in range(3)]
    s3_server.make_bucket("farm")
    page = write_farm(
        tmp_path / "farm", "servers", "--host", "localhost", "--port", str(ports[0]),
        "--server", f"127.0.0.1:{ports[1]}", "--server", f"127.0.0.1:{ports[2]}",
        "--store", f"postgresql://farm@127.0.0.1:{postgres_server.port}/farm",
        "--blobs", "s3://farm/blobs",
    )  # fmt: skip
    page = page.replace("--username postgres", "--username windlass --dbname postgres")
    settings = {
        "PATH": f"{Path(sys.executable).parent}:{postgres_server.programs}:/usr/bin:/bin",
        "AWS_ACCESS_KEY_ID": s3_server.access_key, "AWS_REGION": "us-east-1",
        "AWS_SECRET_ACCESS_KEY": s3_server.secret_key, "AWS_ENDPOINT_URL": s3_server.endpoint,
    }  # fmt: skip
    own = {f"s{number}": {"LISTEN": f"127.0.0.1:{ports[number]}"} for number in (1, 2)}
    with ExitStack() as stack:
        stack.callback(postgres_server.execute, "DROP ROLE IF EXISTS farm")
        stack.callback(postgres_server.execute, "DROP DATABASE IF EXISTS farm WITH (FORCE)")
        desk, balancer, *others = (
            stack.enter_context(Machine(tmp_path, name, settings | own.get(name, {})))
            for name in ("desk", "balancer", "s1", "s2", "worker-1", "worker-2", "worker-3")
        )
        places = {
            "where the files are": [desk], "on the load balancer": [balancer],
            "on one server": others[:1], "on each server": others[:2], "on each worker": others[2:],
        }  # fmt: skip
        site = Site(places, ports[0])
        desk.take(tmp_path / "farm")
        for commands in site.follow(page):
            if "echo the farm works" in commands:
                assert site.said[-1].endswith("the farm works\n")
            if "windlass-backup.timer" in commands:
                desk.run(SUBMIT)
        wait_until("the jobs are done", lambda: count(desk, "completed") == JOBS + 1)
        assert len(list((others[0].root / "var/lib/windlass-backups").glob("*.dump"))) == 2


@pytest.mark.skipif(missing_reason("openssl") is not None, reason=missing_reason("openssl") or "")
def test_the_guides_of_one_machine_and_of_slurm_lead_to_a_farm(tmp_path: Path) -> None:
    port = free_port()
    then = write_farm(tmp_path / "farm", "slurm", "--host", "localhost", "--port", str(port))
    page = (tmp_path / "farm" / "README-server.md").read_text()
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    with ExitStack() as stack:
        desk, one = (
            stack.enter_context(
                Machine(tmp_path, name, {"PATH": path, "LISTEN": f"127.0.0.1:{port}"})
            )
            for name in ("desk", "localhost")
        )
        desk.take(tmp_path / "farm")
        places = {"where the files are": [desk], "on each server": [one], "on each worker": [one]}
        site = Site(places, port)
        assert len(list(site.follow(page))) == 5
        assert site.said[-1].endswith("the farm works\n")
        one.run("systemctl start windlass-backup.service")
        assert list((one.root / "var/lib/windlass-backups").glob("windlass-*.db"))
        assert len(list(site.follow(then))) == 1
        assert site.said[-1].startswith("cluster: applied")


def test_the_commands_of_a_guide_name_the_folder_that_was_given(tmp_path: Path) -> None:
    done = run_here(("init", "farm", str(tmp_path / "my jobs")), {"PATH": "/usr/bin"})
    first = "  # where the files are\n  sh 'my jobs'/certificates.sh\n"
    assert first in done.stdout
    page = (tmp_path / "my jobs" / "README.md").read_text()
    assert not re.search(r"(?<![\w-])farm/", page)


def test_systemd_accepts_the_units_and_finds_little_exposed(tmp_path: Path) -> None:
    if reason := missing_reason("systemd-analyze"):
        pytest.skip(reason)
    write_farm(tmp_path / "farm", "servers")
    most = {"windlass-backup": 30, "windlass-server": 20, "windlass-worker": 55}
    units = sorted((tmp_path / "farm").glob("*.service"))
    assert [unit.stem for unit in units] == list(most)
    for unit in units:
        unit.write_text(unit.read_text().replace(WINDLASS, "/bin/true"))
        assert systemd_analyze("verify", str(unit)) == (0, "")
        limit = f"--threshold={most[unit.stem]}"
        assert systemd_analyze("security", "--offline=yes", limit, str(unit)) == (0, "")


def systemd_analyze(*words: str) -> tuple[int, str]:
    """Returns the exit code and what was said on standard error."""
    done = subprocess.run(["systemd-analyze", *words], capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("kind", FILES)
def test_only_the_owner_can_read_files_with_secrets_and_nothing_is_written_twice(
    kind: str, tmp_path: Path
) -> None:
    page = write_farm(tmp_path / "farm", kind)
    private = tmp_path / "farm" / (".env" if kind == "compose" else "server.env")
    assert private.stat().st_mode & 0o777 == 0o600
    password = re.search("PGPASSWORD=(.*)", private.read_text())
    assert password is None or password[1] not in page
    again = run_here(("init", "farm", str(tmp_path / "farm")), {"PATH": "/usr/bin"})
    assert (again.returncode, "a new or empty directory" in again.stderr) == (2, True)
