"""What needs a package that is not installed says so in one line, with the command for it."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from windlass.domain.values.errors import EXTRAS, MissingExtra, missing_extra, needs

ROOT = Path(__file__).resolve().parents[2]
POSTGRES = "postgresql://u@127.0.0.1:1/d"
# A machine without any extra: every package of one looks as if it were not installed.
BARE = """
import sys
class Bare:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Bare())
"""
# Names of packages on PyPI whose module has another name, and those that are programs.
MODULES = {
    "imageio-ffmpeg": "imageio_ffmpeg",
    "opentelemetry-api": "opentelemetry",
    "opentelemetry-exporter-otlp-proto-http": "opentelemetry",
    "opentelemetry-sdk": "opentelemetry",
}
SOLVER = """\
name: s
repository: /r
build: {production: [make], coverage: [make]}
binaries: [solver]
engine: {name: command}
"""
PROGRAMS = {"cvc5", "yinyang", "z3-solver"}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that takes all extras away from the Python that has it on its path."""
    folder = tmp_path_factory.mktemp("bare")
    (folder / "sitecustomize.py").write_text(BARE.format(modules=sorted(EXTRAS)))
    return folder


def run(bare: Path, *words: str) -> subprocess.CompletedProcess[str]:
    env = {"PYTHONPATH": f"{bare}:{ROOT / 'src'}", "PATH": "/usr/bin:/bin", "HOME": str(bare),
           "WINDLASS_DATA": str(bare / "data")}  # fmt: skip
    return subprocess.run(
        [sys.executable, *words], env=env, capture_output=True, text=True, check=False, timeout=60
    )


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (
            ["server", "--listen", "127.0.0.1:0", "--store", POSTGRES, "--blobs", "memory:"],
            "postgres",
        ),
        (["worker", "--store", POSTGRES, "--blobs", "memory:"], "postgres"),
        (["db", "upgrade", "--store", POSTGRES], "postgres"),
        (
            ["server", "--listen", "127.0.0.1:0", "--store", "memory:", "--blobs", "s3://bucket"],
            "s3",
        ),
        (["fuzz", "status", "{folder}/s.yaml", "--bucket", "s3://bucket"], "s3"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value[:2]),
)
def test_a_command_prints_one_line(bare: Path, words: list[str], extra: str) -> None:
    (bare / "s.yaml").write_text(SOLVER)
    done = run(bare, "-m", "windlass", *(word.format(folder=bare) for word in words))
    lines = [line for line in done.stderr.splitlines() if not line.startswith("{")]
    assert done.returncode != 0
    assert len(lines) == 1, done.stderr
    assert f"pip install 'windlass[{extra}]'" in lines[0]
    assert "Traceback" not in done.stderr + done.stdout


def test_programs_get_an_error_of_windlass(bare: Path) -> None:
    code = (
        "import windlass\n"
        f"try: windlass.Client.embedded({POSTGRES!r}, blobs='memory:', workers=0)\n"
        "except windlass.WindlassError as error: print(type(error).__name__, error)\n"
    )
    done = run(bare, "-c", code)
    assert done.stdout.startswith("MissingExtra this needs asyncpg"), done.stderr
    assert "pip install 'windlass[postgres]'" in done.stdout


@pytest.mark.parametrize("framework", ["django.tasks", "fastapi", "flask", "starlette"])
def test_a_framework_that_is_not_installed_is_named_with_the_command(
    bare: Path, framework: str
) -> None:
    done = run(bare, "-c", f"import windlass.contrib.{framework}")
    said = done.stderr.splitlines()[-1]
    extra = EXTRAS[framework.partition(".")[0]]
    assert said.endswith(f"pip install 'windlass[{extra}]'"), done.stderr
    code = f"try: import windlass.contrib.{framework}\nexcept ImportError: print('none')"
    assert run(bare, "-c", code).stdout == "none\n"


def test_every_extra_is_known() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for extra, packages in project["optional-dependencies"].items():
        if extra in ("all", "bench", "dev"):
            continue
        for package in packages:
            name = package.split(">=")[0].split(";")[0].strip()
            if not name.startswith(("windlass[", "windlass-fuzz")) and name not in PROGRAMS:
                assert MODULES.get(name, name) in EXTRAS, f"{name} of the extra {extra}"


def test_other_imports_that_fail_are_not_explained_away() -> None:
    assert missing_extra(ModuleNotFoundError("x", name="no_such_module")) is None
    with pytest.raises(ModuleNotFoundError), needs("s3"):
        raise ModuleNotFoundError("x", name="no_such_module")
    with pytest.raises(MissingExtra), needs("s3"):
        raise ModuleNotFoundError("x", name="obstore.store")
