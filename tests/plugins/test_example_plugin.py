"""The example plug-in, installed as a wheel: its task, its command and its page."""

import hashlib
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.cli.program import Program
from tests.dashboard.farm import ROOT, STARTED, Farm, running_browser, sign_in

pytestmark = pytest.mark.slow

EXAMPLE = ROOT / "examples" / "checksum_plugin"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Windlass beside the installed wheel."""
    folder = tmp_path_factory.mktemp("plugin")
    made = Program(folder / "data")
    # A build leaves files in the folder it runs in.
    source = shutil.copytree(EXAMPLE, folder / "source")
    python = [sys.executable, "-m"]
    build = [*python, "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=source, check=True, capture_output=True)
    (wheel,) = folder.glob("*.whl")
    install = [*python, "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*install, str(made.modules), str(wheel)], check=True, capture_output=True)
    return made


@pytest.fixture(scope="module")
def farm(program: Program) -> Iterator[Farm]:
    """`windlass up` with the plug-in."""
    with program.running("up", "--port", "0", "--workers", "1") as process:
        assert process.stdout is not None
        found = next(filter(None, map(STARTED.search, iter(process.stdout.readline, ""))))
        yield Farm(found[1], (program.data / "admin-token").read_text().strip())


def test_windlass_lists_what_it_adds(program: Program) -> None:
    done = program.spawn("plugins")
    assert done.returncode == 0, done.stdout
    for part in ("windlass-checksum 1.0", "commands: checksum", "tasks: checksum.file"):
        assert part in done.stdout
    assert "Print checksums of files" in program.spawn("--help").stdout


def test_a_worker_computes_what_the_command_prints_and_the_page_lists(
    program: Program, farm: Farm, tmp_path: Path
) -> None:
    file = tmp_path / "a file"
    file.write_bytes(b"some bytes")
    done = program.spawn("checksum", str(file))
    digest = hashlib.sha256(b"some bytes").hexdigest()
    assert (done.stdout, done.returncode) == (f"{digest}  {file}\n", 0), done.stderr
    with running_browser() as browser:
        page = browser.new_page()
        sign_in(page, farm, farm.token)
        page.goto(farm.address)
        page.get_by_role("link", name="Checksums").click()
        row = page.get_by_role("row").filter(has_text="a file")
        expect(row).to_contain_text("completed")
