"""All processes of a worker run the code that the first of them imported."""

import os
import sys
from pathlib import Path

import pytest

from tests.executors.conftest import OnPython, PythonBench
from windlass.executors.python.code.snapshot import read_kept
from windlass.executors.python.code.store import CodeStore, search_path

CODE = """
import windlass

@windlass.task
def version():
    return {0}

@windlass.task
async def version_async():
    return {0}
"""
LATER = 4_000_000_000  # a time that is not that of the first version


def write(file: Path, text: str, at: int = 0) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    if at:
        os.utime(file, (at, at))


@pytest.fixture
def store(tmp_path: Path) -> CodeStore:
    (tmp_path / "kept").mkdir()
    return CodeStore(tmp_path / "kept", [str(tmp_path / "src")])


def test_a_module_is_kept_as_it_was(store: CodeStore, tmp_path: Path) -> None:
    file = tmp_path / "src" / "shop" / "tasks.py"
    write(file, "VALUE = 1\n")
    write(file.parent / "__init__.py", "")
    assert store.keep("shop.tasks")
    write(file, "VALUE = 22\n", LATER)
    assert store.keep("shop.tasks")
    kept = read_kept(store.folder, "shop.tasks")
    assert kept is not None
    assert (kept.code.co_consts[0], kept.file, kept.places) == (1, str(file), None)
    assert sorted(store.files) == [str(file.parent / "__init__.py"), str(file)]
    assert not (store.folder / "os").exists()


def test_modules_below_a_folder_without_a_file_are_kept(store: CodeStore, tmp_path: Path) -> None:
    write(tmp_path / "src" / "space" / "inner" / "tasks.py", "VALUE = 1\n")
    assert store.keep("space.inner.tasks")
    assert not store.keep("space")


@pytest.mark.parametrize(
    "name", ["os", "windlass.tasks", "nowhere", "../src/shop", "a/b", "-x", "", "x" * 300]
)
def test_what_is_none_of_the_users_modules_is_not_kept(
    store: CodeStore, name: str, tmp_path: Path
) -> None:
    write(tmp_path / "src" / "shop.py", "VALUE = 1\n")
    assert not store.keep(name)
    assert list(store.folder.iterdir()) == []


def test_a_file_that_jobs_cannot_read_is_not_kept(tmp_path: Path) -> None:
    write(tmp_path / "src" / "shop.py", "PASSWORD = 1\n")
    (tmp_path / "kept").mkdir()
    hidden = str(tmp_path / "src")
    store = CodeStore(
        tmp_path / "kept", [hidden], readable=lambda file: not file.startswith(hidden)
    )
    assert not store.keep("shop")
    assert list(store.folder.iterdir()) == []


def test_a_broken_module_is_left_to_the_import(store: CodeStore, tmp_path: Path) -> None:
    write(tmp_path / "src" / "shop.py", "def\n")
    assert not store.keep("shop")


def test_processes_that_start_after_an_edit_run_the_old_code(
    on_python: OnPython, tmp_path: Path
) -> None:
    file = tmp_path / "src" / "edited.py"
    write(file, CODE.format(1))
    (tmp_path / "kept").mkdir()
    path = os.pathsep.join((str(tmp_path / "src"), os.getcwd()))

    async def body(python: PythonBench) -> None:
        assert (await python.call("edited:version")).result == 1
        write(file, CODE.format(22), LATER)
        # Async functions run in another process, which imports the module only now.
        assert (await python.call("edited:version_async")).result == 1
        await python.call("die", "SIGKILL")
        assert (await python.call("edited:version")).result == 1
        file.unlink()
        await python.call("die", "SIGKILL")
        assert (await python.call("edited:version")).result == 1

    code = CodeStore(tmp_path / "kept", search_path(path, sys.path))
    on_python(body, slots=1, env={"PYTHONPATH": path}, code=code)
