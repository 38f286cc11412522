"""The pytest plugin, as a user's tests use it, and as all other tests do not notice it."""

import re
import subprocess
import sys
import tomllib
from pathlib import Path

HERE = Path(__file__).parent
PYTEST = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:schemathesis")
LOADED = """
import sys, windlass.pytest_plugin
heavy = [name for name in sys.modules if name.startswith(("windlass.", "msgspec", "structlog"))]
print(heavy)
"""


def test_a_users_tests_pass_in_virtual_time() -> None:
    words = [*PYTEST, "-o", "addopts="]
    done = subprocess.run(
        [sys.executable, *words, str(HERE / "plugin_user.py")],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "17 passed" in done.stdout


def test_the_tests_of_the_guide_pass(tmp_path: Path) -> None:
    guide = HERE.parents[1] / "docs/guides/testing.md"
    code, *_ = re.findall(r"^```python\n(.*?)^```$", guide.read_text(), re.MULTILINE | re.DOTALL)
    (tmp_path / "test_mail.py").write_text(code)
    done = subprocess.run(
        [sys.executable, *PYTEST, "test_mail.py"],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_loading_the_plugin_imports_nothing_of_windlass() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['windlass.pytest_plugin']"


def test_installing_windlass_registers_it() -> None:
    project = tomllib.loads((HERE.parents[1] / "pyproject.toml").read_text())["project"]
    assert project["entry-points"]["pytest11"] == {"windlass": "windlass.pytest_plugin"}
