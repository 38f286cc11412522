"""Marks on answers: strangers get none, and those of other installations do nothing."""

from pathlib import Path

from tests.support.running import run
from tests.support.running_server import RunningServer, job, running_server

MARK = "Windlass-Mark"
ENROL = "/api/v1/workers/enrol"


async def _mark_of(server: RunningServer) -> str:
    await server.submit()
    return str((await server.admin.get("/api/v1/jobs")).headers[MARK])


async def _log_of(server: RunningServer) -> str:
    return str(await server.services.engine.store.read(lambda tx: tx.log.read(0, 1_000)))


def test_whoever_may_do_nothing_gets_no_mark(tmp_path: Path) -> None:
    """It says how many events there are."""

    async def scenario() -> None:
        async with running_server(f"sqlite:///{tmp_path}/jobs.db") as server:
            assert await _mark_of(server)
            stranger = await server.http(None)
            pending = (await stranger.post(ENROL, json={"name": "w"})).json()["token"]
            for client in (stranger, await server.http(pending)):
                for path in ("/healthz", "/readyz", "/api/v1/jobs"):
                    assert MARK not in (await client.get(path)).headers

    run(scenario())


def test_marks_of_other_installations_and_long_ones_do_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with running_server(f"sqlite:///{tmp_path}/theirs.db") as theirs:
            await theirs.submit(*[job()] * 20)
            foreign = await _mark_of(theirs)
        async with running_server(f"sqlite:///{tmp_path}/ours.db") as ours:
            own = await _mark_of(ours)
            assert int(foreign.split(".")[0]) > int(own.split(".")[0])  # It would be a loss.
            for said in (foreign, "9" * 6_000, own.upper() + "0" * 100):
                reply = await ours.admin.get("/api/v1/jobs", headers={MARK: said})
                assert reply.status_code == 200, reply.text
            assert "Epoch" not in await _log_of(ours)

    run(scenario())
