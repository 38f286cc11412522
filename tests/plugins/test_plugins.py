"""Plug-ins are found and checked; a broken one is reported, and stops nothing but itself."""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.program import Program
from tests.plugins.packages import add_package, declaration
from tests.support.running import run
from windlass.assembly.stores import open_blobs
from windlass.blobs.memory import MemoryBlobs
from windlass.cli.commands.start.server import server
from windlass.cli.commands.start.up import up
from windlass.cli.options.configuration import OPTIONS
from windlass.cli.root import COMMANDS, app
from windlass.clock import RealClock
from windlass.domain.access.rights import Action
from windlass.domain.pools.pools import parse_pool
from windlass.domain.values.errors import InvalidInput
from windlass.operations.dispatch.routes import Routes
from windlass.plugins import RESERVED, Plugin, PluginFailed, installed_plugins
from windlass.providers import make_provider
from windlass.server.plugins import RunningPart, ServerPart, load_server_part
from windlass.server.routes import ALL

BROKEN = "import no_such_module_of_theirs\n"

outside = ServerPart(Routes("/api/v1/jobs", "theirs"))
everybodys = ServerPart(Routes("/api/v1/theirs", "theirs"))
workers = ServerPart(Routes("/api/v1/theirs", "theirs"))


async def _answer() -> None: ...


outside.routes.get("/more", needs=Action.READ_PLUGINS)(_answer)  # type: ignore[attr-defined]
everybodys.routes.get("", needs=Action.CHECK_HEALTH)(_answer)  # type: ignore[attr-defined]
workers.routes.get("", needs=Action.SYNC)(_answer)  # type: ignore[attr-defined]


@pytest.fixture(autouse=True)
def _forgotten_modules() -> Iterator[None]:
    """Each test has a module of this name."""
    yield
    for name in ("theirs", "others", "jobs"):
        sys.modules.pop(name, None)


def found(monkeypatch: pytest.MonkeyPatch, folder: Path, name: str) -> tuple[bool, str]:
    monkeypatch.syspath_prepend(str(folder))
    (one,) = (one for one in installed_plugins() if one.name == name)
    return one.plugin is not None, one.problem


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        (declaration("theirs"), ""),
        (BROKEN, "ModuleNotFoundError: No module named 'no_such_module_of_theirs'"),
        ("raise SystemExit\n", "SystemExit"),
        ("PLUGIN = {}\n", "is dict, expected a windlass.plugins.Plugin"),
        ("from windlass.plugins import Plugin\nPLUGIN = Plugin(name='theirs')\n", "TypeError"),
        (declaration("theirs", api=2), "written for api 2, and this Windlass has api 1"),
        (declaration("other"), "named theirs and its declaration other"),
        (
            declaration("theirs", "commands={'jobs': PluginCommand('a:b', 'c')}"),
            "its jobs must be named theirs or theirs-…",
        ),
        (declaration("theirs", "server_options={'data': 'x'}"), "its data must be named theirs"),
    ],
)  # fmt: skip
def test_a_declaration_is_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: str, problem: str
) -> None:
    add_package(tmp_path, "theirs", code)
    works, said = found(monkeypatch, tmp_path, "theirs")
    assert works == (not problem)
    assert problem in said


def test_a_name_of_windlass_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_package(tmp_path, "jobs", declaration("jobs"))
    assert found(monkeypatch, tmp_path, "jobs") == (False, "Windlass uses the name jobs itself")


def test_the_second_plugin_of_a_name_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_package(tmp_path / "a", "theirs", declaration("theirs"))
    add_package(tmp_path / "b", "others", declaration("theirs"), points="theirs = others:PLUGIN")
    monkeypatch.syspath_prepend(str(tmp_path / "a"))
    monkeypatch.syspath_prepend(str(tmp_path / "b"))
    ones = [one for one in installed_plugins() if one.name == "theirs"]
    assert [one.plugin is None for one in ones] == [False, True]
    assert "has a plug-in of this name too" in ones[1].problem


def test_every_name_of_windlass_is_reserved() -> None:
    used = {*COMMANDS, *(one.alias for one in COMMANDS.values() if one.alias)}
    used |= {one.path.split("/")[3] for one in ALL if one.path.startswith("/api/v1/")}
    used |= {option.flag.removeprefix("--").split("-")[0] for option in OPTIONS.values()}
    for command in (up, server):
        collection = app[command.__name__].assemble_argument_collection(
            default_parameter=app.default_parameter, parse_docstring=True
        )
        names = (name for argument in collection for name in argument.names)
        used |= {n[2:].split("-")[0] for n in names if n.startswith("--")}
    assert used - RESERVED - {"fuzz", ""} == set()


@pytest.mark.parametrize("part", ["outside", "everybodys", "workers"])
def test_routes_lie_below_the_plugins_path_and_need_an_action_of_people(part: str) -> None:
    plugin = Plugin(api=1, name="theirs", about="", server=f"{__name__}:{part}")
    with pytest.raises(PluginFailed, match=r"must (be below|need an action of people)"):
        load_server_part(plugin)


def test_metrics_that_cannot_be_read_are_left_out() -> None:
    async def fail(_: object) -> list[object]:
        raise OSError("away")

    part = RunningPart("theirs", ServerPart(families=fail), None)  # type: ignore[arg-type]
    assert run(part.families()) == []


def test_providers_and_blobs_of_plugins_are_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    more = "providers={'vm': 'theirs:vm'}, blobs={'theirs': 'theirs:blobs'}"
    code = (
        "from windlass.blobs.memory import MemoryBlobs\n"
        "def vm(pool, folder, clock): return f'{pool.name} in {folder}'\n"
        "def blobs(url): return MemoryBlobs()\n"
    )
    monkeypatch.syspath_prepend(
        str(add_package(tmp_path, "theirs", declaration("theirs", more) + code))
    )
    pool = parse_pool({"name": "p", "provider": "theirs:vm"})
    assert str(make_provider(pool, tmp_path, RealClock())) == f"p in {tmp_path}"
    assert isinstance(open_blobs("theirs://bucket"), MemoryBlobs)
    with pytest.raises(InvalidInput, match="theirs:vm"):
        make_provider(parse_pool({"name": "p", "provider": "theirs:no"}), tmp_path, RealClock())
    with pytest.raises(InvalidInput, match="provider"):
        parse_pool({"name": "p", "provider": "vm"})


def test_a_broken_plugin_is_reported_and_stops_nothing_but_its_command(tmp_path: Path) -> None:
    add_package(tmp_path / "a", "broken", BROKEN)
    more = "commands={'half': PluginCommand('half:missing', 'Fail.')}"
    add_package(tmp_path / "a", "half", declaration("half", more))
    program = Program(tmp_path / "home")

    def call(*words: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, "-m", "windlass", *words], capture_output=True, text=True, check=False,
            env={**program.environment, "PYTHONPATH": str(tmp_path / "a")},
        )  # fmt: skip
        return done.returncode, done.stdout, done.stderr

    code, said, _ = call("plugins", "--json")
    assert code == 1
    problems = {one["name"]: " ".join(one["problems"]) for one in json.loads(said)}
    assert "no_such_module_of_theirs" in problems["broken"]
    assert "cannot load the command half" in problems["half"]
    code, said, _ = call("--help")
    assert (code, "Fail." in said, "broken" in said) == (0, True, False)
    assert call("config", "--json")[0] == 0
    _, said, _ = call("doctor", "--json")
    states = {one["check"]: one["state"] for one in json.loads(said)}
    assert (states["plug-in broken"], states["plug-in half"]) == ("problem", "problem")
    for name, why in (("broken", "the plug-in broken is not loaded"), ("half", "cannot load the")):
        code, _, complaint = call(name)
        assert code != 0
        assert why in complaint
        assert "Traceback" not in complaint
