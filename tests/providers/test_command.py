"""The command provider: programs of the user's, which get what they need and nothing more."""

import asyncio
import os
from pathlib import Path

import pytest

from tests.providers.orders import OWNER, order
from windlass.domain.pools.pools import Pool
from windlass.domain.values.errors import InvalidInput
from windlass.ports.provider import Machine, ProviderFault
from windlass.providers.command import CommandProvider

LAUNCH = """#!/bin/sh
mkdir -p "$1"
cat > "$1/$WINDLASS_POOL_TOKEN"
env | grep '^WINDLASS_' | sort > "$1.env"
echo "starting"
echo "vm-$WINDLASS_POOL_TOKEN"
"""
LIST = """#!/bin/sh
for file in "$1"/*; do [ -e "$file" ] && echo "$(basename "$file") vm-$(basename "$file")"; done
true
"""
TERMINATE = """#!/bin/sh
rm -f "$1/$WINDLASS_POOL_TOKEN"
"""


def script(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    path.chmod(0o755)
    return str(path)


def provider(folder: Path, **options: object) -> CommandProvider:
    cloud = str(folder / "cloud")
    given = {
        "launch": [script(folder, "launch", LAUNCH), cloud],
        "list": [script(folder, "list", LIST), cloud],
        "terminate": [script(folder, "terminate", TERMINATE), cloud],
    }
    return CommandProvider(Pool(name="build", provider="command", options={**given, **options}))


def test_machines_are_started_found_and_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith("WINDLASS_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("WINDLASS_TOKEN", "the server's own")

    async def play() -> None:
        made = provider(tmp_path)
        assert await made.find(OWNER) == []
        machine = await made.launch(order())
        assert machine == Machine("build-1", "vm-build-1")
        assert await made.launch(order()) == machine
        assert await made.find(OWNER) == [machine]
        await made.terminate([machine])
        assert await made.find(OWNER) == []

    asyncio.run(play())
    assert (tmp_path / "cloud.env").read_text().splitlines() == [
        "WINDLASS_CODE=enrol_secret",
        "WINDLASS_INSTALLATION=0123456789ab",
        "WINDLASS_POOL=build",
        "WINDLASS_POOL_TOKEN=build-1",
        "WINDLASS_SERVER=http://127.0.0.1:9",
    ]


def test_the_script_on_standard_input_becomes_the_worker(tmp_path: Path) -> None:
    asyncio.run(provider(tmp_path).launch(order()))
    assert (tmp_path / "cloud" / "build-1").read_text() == (
        "#!/bin/sh\n"
        "export WINDLASS_SERVER=http://127.0.0.1:9\n"
        "export WINDLASS_CODE=enrol_secret\n"
        "exec windlass worker --name build-1 --slots 2 --resources cpus=4\n"
    )


def test_without_a_list_nobody_can_tell(tmp_path: Path) -> None:
    assert asyncio.run(provider(tmp_path, list=[]).find(OWNER)) is None


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"launch": ["/does/not/exist"]}, "cannot run /does/not/exist: No such file"),
        ({"launch": ["sh", "-c", "echo no quota >&2; exit 3"]}, "sh ended with 3: no quota"),
        ({"launch": ["true"]}, "true must print the machine's name, got nothing"),
    ],
)
def test_what_goes_wrong_is_told(tmp_path: Path, options: dict[str, object], words: str) -> None:
    with pytest.raises(ProviderFault, match=words):
        asyncio.run(provider(tmp_path, **options).launch(order()))


def test_a_list_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ProviderFault, match="must print TOKEN NAME, got 'a b c'"):
        asyncio.run(provider(tmp_path, list=["echo", "a b c"]).find(OWNER))


def test_a_program_that_hangs_is_ended_with_the_call(tmp_path: Path) -> None:
    mark = tmp_path / "pid"

    async def play() -> None:
        made = provider(tmp_path, launch=["sh", "-c", f"echo $$ > {mark}; exec sleep 600"])
        call = asyncio.create_task(made.launch(order()))
        while not (mark.exists() and mark.read_text()):
            await asyncio.wait([call], timeout=0.01)
        call.cancel()
        await asyncio.gather(call, return_exceptions=True)

    asyncio.run(play())
    assert not Path(f"/proc/{mark.read_text().strip()}").exists()


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({}, "options.launch"),
        ({"launch": "rm -rf"}, "options.launch"),
        ({"launch": ["a"], "terminate": [1]}, "options.terminate"),
        ({"launch": ["a"], "terminate": ["a"], "lunch": ["a"]}, "options.lunch"),
    ],
)
def test_options_are_refused_by_name(options: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as error:
        CommandProvider(Pool(name="p", provider="command", options=options))
    assert error.value.field == field
