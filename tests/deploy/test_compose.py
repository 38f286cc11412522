"""The images and the compose file of `windlass init farm --kind compose`.

There is no registry of images: the base is made of the Python that runs the tests, and database and
bucket are servers of the tests. Images are built and started in the long form only.
"""

import importlib.util
import io
import os
import shlex
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.cli.program import run_here
from tests.deploy.compose import BASE
from tests.deploy.machines import blocks
from tests.supply.lock_file import LOCK, read_lock
from tests.supply.requirements import ROOT, closure, ours
from tests.support.containers import EngineMissingError, RootlessPodman, libraries, python_archive
from tests.support.forms import LONG
from tests.support.loopback import free_port
from tests.support.s3 import S3Server

CERTIFICATES: Final = "/etc/ssl/certs/ca-certificates.crt"
COMPOSE: Final = "tests.deploy.compose"
EXTRAS: Final = ("postgres", "s3", "oidc", "kubernetes")  # of the server's image
MAX_S: Final = 900


def write_farm(folder: Path, *words: str) -> str:
    """Writes the files of a farm; returns its guide."""
    done = run_here(
        ("init", "farm", str(folder), "--kind", "compose", *words), {"PATH": "/usr/bin"}
    )
    assert done.returncode == 0, done.stderr
    return (folder / "README.md").read_text()


def test_the_compose_file_is_a_valid_one_and_has_no_secrets(tmp_path: Path) -> None:
    write_farm(tmp_path / "farm")
    text = (tmp_path / "farm" / "compose.yaml").read_text()
    checked = subprocess.run(
        [Path(sys.executable).with_name("check-jsonschema"), "--builtin-schema",
         "vendor.compose-spec", tmp_path / "farm" / "compose.yaml"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert checked.returncode == 0, checked.stdout
    private = tmp_path / "farm" / ".env"
    assert private.stat().st_mode & 0o777 == 0o600
    values = [line.partition("=")[2] for line in private.read_text().splitlines()]
    secrets = set(filter(None, values))
    assert len(secrets) == 2
    assert all(len(secret) > 20 and secret not in text for secret in secrets)


def base_archive() -> bytes:
    """Returns the files of a base image: Python with pip, a shell, authorities to trust."""
    spec = importlib.util.find_spec("pip")
    assert spec is not None
    assert spec.origin is not None
    data = io.BytesIO(python_archive())
    wheels = closure(ours(EXTRAS)).values()
    modules = [
        Path(str(one.locate_file(path)))
        for one in wheels for path in one.files or () if path.suffix == ".so"
    ]  # fmt: skip
    with tarfile.open(fileobj=data, mode="a") as archive:
        archive.add(Path(CERTIFICATES).resolve(), CERTIFICATES)
        there = {Path("/", name) for name in archive.getnames()}
        for library in libraries(*modules) - there:
            if not library.is_relative_to(sys.prefix):
                archive.add(library.resolve(), str(library))
        packages = Path(os.__file__).parent / "site-packages"
        archive.add(Path(spec.origin).parent, str(packages / "pip"))
        link = tarfile.TarInfo("bin/python3")
        link.type, link.linkname = tarfile.SYMTYPE, str(Path(sys.executable).resolve())
        archive.addfile(link)
    return data.getvalue()


def fetch_wheels(folder: Path) -> None:
    """Puts what the images install beside their recipe: this checkout, and versions of the lock."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    pins = read_lock(LOCK)
    lock = folder / "lock"
    lock.write_text("".join(pins[name].text for name in closure(ours(EXTRAS))))
    wheel = ["wheel", "--no-build-isolation", "--wheel-dir", str(folder), str(ROOT)]
    download = ["download", "--require-hashes", "--dest", str(folder), "-r", str(lock)]
    for command in (wheel, download):
        subprocess.run([*pip, *command, "--no-deps"], check=True, timeout=MAX_S)


@pytest.fixture
def podman() -> Iterator[RootlessPodman]:
    try:
        engine = RootlessPodman()
    except EngineMissingError as missing:
        pytest.skip(str(missing))
    settings = engine.folder / "home/.config/containers/containers.conf"
    settings.write_text(settings.read_text() + '[containers]\nnetns = "host"\n')
    yield engine
    engine.close()


if LONG:

    def test_the_guide_builds_images_and_starts_a_farm_of_them(
        podman: RootlessPodman, postgres_dsn: str, s3_server: S3Server
    ) -> None:
        port = free_port()
        s3_server.make_bucket("compose")
        words = ("--port", str(port), "--store", postgres_dsn, "--blobs", "s3://compose/blobs")
        page = write_farm(podman.folder / "farm", *words)
        settle(podman.folder / "farm", s3_server, port)
        podman.import_image(base_archive(), BASE)
        said = [follow(podman, commands) for _, commands in blocks(page)]
        assert said[-1].endswith("the farm works\n")
        assert sorted(podman.containers()) == ["server", "worker-1", "worker-2"]
        for name in podman.containers():
            assert podman.run("exec", name, "id", "-u") == "10001"
            assert "pip" not in podman.run("exec", name, "ls", "/opt/windlass/bin").split()


def settle(farm: Path, s3_server: S3Server, port: int) -> None:
    """Names the servers of this test to a farm, and fetches what its images install."""
    path = farm / "compose.yaml"
    path.write_text(path.read_text().replace("KEY_ID: windlass", f"KEY_ID: {s3_server.access_key}"))
    with (farm / ".env").open("a") as private:
        private.write(
            f"S3_SECRET={s3_server.secret_key}\nS3_ENDPOINT={s3_server.endpoint}\n"
            f"WORKERS_SERVER=http://localhost:{port}\n"
        )
    fetch_wheels(farm)


def follow(podman: RootlessPodman, commands: str) -> str:
    """Runs a block of the guide where the farm is; returns what it prints."""
    python = shlex.quote(sys.executable)
    settings = {
        "PATH": f"{Path(sys.executable).parent}:{podman.env['PATH']}", "PYTHONPATH": str(ROOT),
        "PODMAN": shlex.join(["env", *(f"{k}={v}" for k, v in podman.env.items()),
                              *podman.command(["podman", "--log-level=error"])]),
        "HOME": str(podman.folder), "LANG": "C.UTF-8",
    }  # fmt: skip
    done = subprocess.run(
        ["sh", "-euc", f'docker() {{ shift; {python} -m {COMPOSE} "$@"; }}\n{commands}'],
        env=settings, cwd=podman.folder, capture_output=True, text=True, timeout=MAX_S, check=False,
    )  # fmt: skip
    assert done.returncode == 0, (commands, done.stdout[-3000:], done.stderr[-6000:])
    return done.stdout
