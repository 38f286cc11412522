"""All processes of a worker run the code that the first of them imported."""

import asyncio
import os
import sys
from asyncio.subprocess import PIPE
from pathlib import Path

import pytest

from tests.executors.conftest import OnPython, PythonBench
from windlass.executors.python.code_store import CodeStore, search_path

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
    return CodeStore([str(tmp_path / "src")])


ASK = """
import socket, sys
from windlass.executors.python.snapshot import Asking

kept = Asking(socket.socket(fileno=int(sys.argv[1])))(sys.argv[2])
print(kept and (len(str(kept.code.co_consts[0])), kept.code.co_consts[0][:9], kept.file))
"""


def asked(store: CodeStore, name: str) -> str:
    """Returns what a function process gets when it asks for a module."""

    async def ask() -> str:
        with store.connect() as connection:
            fd = connection.fileno()
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-c", ASK, str(fd), name, pass_fds=[fd], stdout=PIPE
            )
        return (await process.communicate())[0].decode().strip()

    return asyncio.run(ask())


def test_a_module_is_kept_as_it_was(store: CodeStore, tmp_path: Path) -> None:
    file = tmp_path / "src" / "shop" / "tasks.py"
    write(file, "VALUE = 'one'\n")
    write(file.parent / "__init__.py", "")
    assert store.keep("shop.tasks")
    write(file, "VALUE = 'another'\n", LATER)
    assert store.keep("shop.tasks")
    assert asked(store, "shop.tasks") == repr((3, "one", str(file)))
    assert sorted(store.files) == [str(file.parent / "__init__.py"), str(file)]
    assert asked(store, "os") == "None"


def test_a_module_of_any_size_is_handed_over(store: CodeStore, tmp_path: Path) -> None:
    file = tmp_path / "src" / "large.py"
    write(file, f"VALUE = {'x' * 3_000_000!r}\n")
    assert asked(store, "large") == repr((3_000_000, "x" * 9, str(file)))


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
    assert store.files == []


def test_a_file_that_jobs_cannot_read_is_not_kept(tmp_path: Path) -> None:
    write(tmp_path / "src" / "shop.py", "PASSWORD = 1\n")
    hidden = str(tmp_path / "src")
    store = CodeStore([hidden], readable=lambda file: not file.startswith(hidden))
    assert not store.keep("shop")
    assert store.files == []


def test_a_broken_module_is_left_to_the_import(store: CodeStore, tmp_path: Path) -> None:
    write(tmp_path / "src" / "shop.py", "def\n")
    assert not store.keep("shop")


def test_processes_that_start_after_an_edit_run_the_old_code(
    on_python: OnPython, tmp_path: Path
) -> None:
    file = tmp_path / "src" / "edited.py"
    write(file, CODE.format(1))
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

    code = CodeStore(search_path(path, sys.path))
    on_python(body, slots=1, env={"PYTHONPATH": path}, code=code)


def test_connections_end_with_the_store_whoever_holds_the_other_end(store: CodeStore) -> None:
    async def scene() -> None:
        with store.connect() as asking:
            store.close()
            assert asking.recv(1) == b""

    asyncio.run(scene())
