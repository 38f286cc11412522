"""What a program loads when it imports Windlass: no more than it uses."""

import subprocess
import sys

import pytest

import windlass

# A client of a server needs none of these; neither does a job's own process.
HEAVY = frozenset(
    {"apsw", "asyncpg", "cyclopts", "prometheus_client", "rich", "structlog", "uvicorn", "uvloop"}
)
OWN = frozenset(
    f"windlass.{name}"
    for name in ("api", "cli", "embedded", "engine", "executors", "server", "store", "worker")
)
PROGRAMS = {
    # Statement: how many modules of Windlass it may load, and how many others.
    "import windlass": (1, 35),
    "from windlass import task, current": (36, 90),
    "from windlass import Client, AsyncClient": (70, 310),
}


def loaded_by(statement: str) -> list[str]:
    """Returns the modules of a fresh interpreter after the statement."""
    before = "import sys; before = set(sys.modules)"
    after = "print(*sorted(set(sys.modules) - before))"
    program = f"{before}\n{statement}\n{after}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    return done.stdout.decode().split()


@pytest.mark.parametrize("statement", PROGRAMS)
def test_a_program_loads_no_more_than_it_uses(statement: str) -> None:
    names = loaded_by(statement)
    packages = {name.partition(".")[0] for name in names}
    assert not HEAVY & packages
    own = [name for name in names if name.partition(".")[0] == "windlass"]
    assert not OWN & {".".join(name.split(".")[:2]) for name in own}
    most_own, most_others = PROGRAMS[statement]
    assert len(own) <= most_own, own
    assert len(names) - len(own) <= most_others, names


def test_an_embedded_client_loads_no_web_server() -> None:
    names = loaded_by("import windlass.embedded.opening")
    assert "windlass.engine.engine" in names
    assert not {"uvicorn", "prometheus_client", "windlass.server"} & set(names)


def test_the_dashboard_needs_no_import_of_its_own_and_loads_no_server() -> None:
    names = loaded_by("import windlass\nwindlass.dashboard.app()")
    assert "windlass.dashboard.page" in names
    assert not {"uvicorn", "windlass.server", "aiohttp"} & set(names)


def test_the_process_of_a_function_loads_no_log_http_client_or_loop() -> None:
    names = loaded_by("import windlass.executors.python.child")
    assert not {"aiohttp", "asyncio", "rich", "structlog", "windlass.plugins"} & set(names)
    assert len(names) <= 170, names


def test_a_server_loads_an_http_client_only_to_call_others() -> None:
    names = loaded_by("import windlass.cli.commands.start.server")
    assert "windlass.server.serve" in names
    assert not {"aiohttp", "windlass.client.webhooks"} & set(names)


def test_a_log_loads_no_colors_for_tracebacks() -> None:
    names = loaded_by("import windlass.cli.app\nwindlass.cli.app._prepare(['server'])")
    assert "structlog" in names
    assert "rich" not in names


def test_every_public_name_is_found_and_listed() -> None:
    assert set(windlass.__all__) == set(windlass._MODULES)
    for name in windlass.__all__:
        assert getattr(windlass, name).__name__ == name
    assert dir(windlass) == sorted([*windlass.__all__, "contrib", "dashboard", "__version__"])
    assert windlass.__version__
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        windlass.nothing  # noqa: B018 - asking for it is the test
