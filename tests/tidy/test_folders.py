"""Each package says what it is for."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = (ROOT / "src" / "windlass", ROOT / "fuzz" / "src" / "windlass_fuzz")

DOCSTRING_LINES = 2


def source_folders() -> list[Path]:
    return sorted({path.parent for root in SOURCES for path in root.rglob("*.py")})


def short_docstrings(folders: list[Path]) -> list[str]:
    found = []
    for folder in folders:
        package = folder / "__init__.py"
        text = ast.get_docstring(ast.parse(package.read_text())) if package.exists() else None
        lines = [line for line in (text or "").splitlines() if line.strip()]
        if len(lines) < DOCSTRING_LINES:
            found.append(f"{folder}: its docstring must state what it holds and its limits")
    return found


def test_every_package_states_its_purpose_and_its_limits() -> None:
    assert short_docstrings(source_folders()) == []


def test_a_docstring_of_one_line_is_reported(tmp_path: Path) -> None:
    (tmp_path / "__init__.py").write_text('"""One line."""\n')
    assert len(short_docstrings([tmp_path])) == 1
