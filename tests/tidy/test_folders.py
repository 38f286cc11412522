"""A folder stays small enough to hold in mind, and a package says what it is for."""

import ast
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "windlass"

FILES_LIMIT = 15
"""Python files in one source folder, `__init__.py` aside."""

DOCSTRING_LINES = 2


def source_folders(root: Path = SOURCE) -> list[Path]:
    return sorted({path.parent for path in root.rglob("*.py")})


def crowded(folders: list[Path], limit: int) -> list[str]:
    counts = {f: sum(path.name != "__init__.py" for path in f.glob("*.py")) for f in folders}
    return [f"{f}: {count} files; split it" for f, count in counts.items() if count > limit]


def short_docstrings(folders: list[Path]) -> list[str]:
    found = []
    for folder in folders:
        package = folder / "__init__.py"
        text = ast.get_docstring(ast.parse(package.read_text())) if package.exists() else None
        lines = [line for line in (text or "").splitlines() if line.strip()]
        if len(lines) < DOCSTRING_LINES:
            found.append(f"{folder}: its docstring must state what it holds and its limits")
    return found


def test_no_folder_holds_more_files_than_a_person_can_keep_in_mind() -> None:
    assert crowded(source_folders(), FILES_LIMIT) == []


def test_every_package_states_its_purpose_and_its_limits() -> None:
    assert short_docstrings(source_folders()) == []


def test_a_crowded_folder_is_reported(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"part{number}.py").write_text("")
    (tmp_path / "__init__.py").write_text('"""One line."""\n')
    assert crowded([tmp_path], 3) == []
    assert len(crowded([tmp_path], 2)) == 1
    assert len(short_docstrings([tmp_path])) == 1
