"""A server whose SQLite file is damaged while it runs says so, and confirms nothing more."""

from pathlib import Path

from tests.store.sqlite.damaging import zero_a_page
from tests.support.running import run
from tests.support.running_server import error_of, job, running_server
from windlass.store.sqlite.store import SqliteStore

UNAVAILABLE = 503


def test_it_is_not_ready_and_takes_no_jobs(tmp_path: Path) -> None:
    async def work() -> None:
        path = tmp_path / "windlass.db"
        async with running_server(f"sqlite://{path}") as server:
            await server.submit(*(job(args={"argv": ["echo", "x" * 500]}) for _ in range(500)))
            store = server.services.engine.store
            assert isinstance(store, SqliteStore)
            store.checkpoint()
            zero_a_page(path)
            met = await server.admin.post("/api/v1/verify")
            assert (met.status_code, error_of(met)["code"]) == (UNAVAILABLE, "store_corrupt")
            ready = await server.admin.get("/readyz")
            assert (ready.status_code, ".recover" in ready.text) == (UNAVAILABLE, True)
            refused = await server.admin.post("/api/v1/jobs", json={"jobs": [job()]})
            assert refused.status_code == UNAVAILABLE
            assert error_of(refused)["code"] == "store_corrupt"

    run(work())
