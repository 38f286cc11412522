"""A damaged file is refused with what to do, by everything that opens or copies it."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from tests.cli.program import Program
from tests.store.sqlite.damaging import DAMAGES, make_filled, mismatch_index, zero_a_page
from tests.store.sqlite.driving import close, fill, open_store, read, transact
from windlass.domain.values.errors import StoreUnavailable
from windlass.ports.loop_time import SMALL
from windlass.store.sqlite.backup import back_up
from windlass.store.sqlite.store import SqliteStore

REFUSED = 5  # the exit code


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("intact") / "windlass.db"
    make_filled(path)
    return path


@pytest.fixture(params=DAMAGES)
def damaged(request: pytest.FixtureRequest, intact: Path, tmp_path: Path) -> Path:
    """A file with one kind of damage, in a data directory of its own."""
    path = tmp_path / "windlass.db"
    shutil.copy(intact, path)
    DAMAGES[request.param](path)
    return path


def refused(call: Callable[[], object]) -> StoreUnavailable:
    with pytest.raises(StoreUnavailable) as caught:
        call()
    error = caught.value
    assert error.code == "store_corrupt"
    assert "restore the newest backup" in error.message
    assert ".recover" in error.message
    return error


def test_it_is_not_opened_and_the_error_does_not_cause_itself(damaged: Path) -> None:
    error = refused(lambda: open_store(damaged))
    assert error.__cause__ is not error


def test_it_is_not_opened_by_a_guest_either(damaged: Path) -> None:
    refused(lambda: open_store(damaged, exclusive=False))


def test_it_gives_no_backup(damaged: Path, tmp_path: Path) -> None:
    refused(lambda: back_up(damaged, tmp_path / "copy.db"))
    assert not list(tmp_path.glob("copy.db*"))


def test_commands_and_servers_say_so_and_end(intact: Path, tmp_path: Path) -> None:
    path = tmp_path / "windlass.db"
    shutil.copy(intact, path)
    zero_a_page(path)
    program = Program(tmp_path)
    store = ("--store", f"sqlite://{path}")
    commands = (
        ("verify", *store),
        ("db", "restored"),
        ("db", "upgrade"),
        ("db", "backup", str(tmp_path / "copy.db")),
        ("server", *store, "--blobs", "memory:", "--listen", "127.0.0.1:0"),
        ("up", "--port", "0", "--workers", "0"),
    )
    for command in commands:
        done = program(*command)
        assert (done.returncode, done.stdout) == (REFUSED, ""), command
        assert f"{path} is damaged" in done.stderr, command
        assert ".recover" in done.stderr, command


def test_an_index_that_lost_its_rows_is_found_by_backup_and_verify(
    intact: Path, tmp_path: Path
) -> None:
    path = tmp_path / "windlass.db"
    shutil.copy(intact, path)
    mismatch_index(path)
    refused(lambda: back_up(path, tmp_path / "copy.db"))
    checked = Program(tmp_path)("verify", "--store", f"sqlite://{path}")
    assert (checked.returncode, "is damaged" in checked.stderr) == (REFUSED, True)


@pytest.fixture
def damaged_meanwhile(tmp_path: Path) -> Iterator[SqliteStore]:
    """An open store whose file is damaged now."""
    path = tmp_path / "windlass.db"
    store = open_store(path)
    fill(path, 2_000)
    assert store.checkpoint()
    zero_a_page(path)
    yield store
    close(store)


def test_damage_met_while_a_server_runs_ends_all_writing(damaged_meanwhile: SqliteStore) -> None:
    store = damaged_meanwhile
    with capture_logs() as logs:
        refused(lambda: read(store, lambda tx: tx.jobs.specs(range(1, 2_001))))
        refused(lambda: transact(store, lambda tx: tx.catalog.set_meta("epoch", 1)))
        refused(lambda: read(store, lambda tx: tx.catalog.meta()))
    (said,) = logs
    assert (said["event"], said["log_level"]) == ("store_corrupt", "error")
    assert ".recover" in said["error"]


@pytest.mark.parametrize("rows", [0, SMALL + 1], ids=["on the loop", "in a thread"])
def test_damage_met_by_a_write_is_rolled_back(damaged_meanwhile: SqliteStore, rows: int) -> None:
    store = damaged_meanwhile
    refused(lambda: transact(store, lambda tx: tx.jobs.specs(range(1, 2_001)), rows))
    assert not store.writer.in_transaction
    refused(lambda: transact(store, lambda tx: tx.catalog.meta()))
