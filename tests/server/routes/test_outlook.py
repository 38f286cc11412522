"""What `show` and lists tell of the future: from what such jobs took before."""

from tests.support.running import run
from tests.support.running_server import job, running_server
from windlass.domain.rows.statistics import Measure, WorkKind, as_row, gather
from windlass.store.sql.transaction import WriteTx

MINUTE = 60_000


def test_a_waiting_job_tells_when_and_what_would_be_better() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            greedy = job(resources={"memory": "16GiB"})
            worker = await server.worker(slots=1, metadata={"system:memory": 2**36})
            first = await server.submit(greedy)
            shown = await server.show(first)
            assert (shown["statistics"], shown["suggestions"]) == (None, [])
            engine = server.services.engine
            kind = WorkKind("default", "default", "true")

            async def teach(tx: WriteTx) -> None:
                runs = as_row(kind, Measure.RUN_MS, gather([10 * MINUTE] * 8), 0)
                memory = as_row(kind, Measure.PEAK_MEMORY, gather([300 * 2**20] * 8), 0)
                await tx.statistics.put([runs, memory])

            await engine.store.transact(teach)
            assert len((await worker.sync(want=1)).jobs) == 1
            second = await server.submit(greedy)
            waiting, running = await server.show(second), await server.show(first)
            assert waiting["statistics"]["count"] == 8
            assert waiting["statistics"]["mean"] == 600
            assert waiting["statistics"]["kind"] == "true"
            assert waiting["suggestions"] == [
                "asks for 16 GiB of memory, 8 runs used at most 300 MiB: ask for memory=384MiB"
            ]
            start, end = waiting["estimated_start"], waiting["estimated_end"]
            assert start["earliest"] <= start["likely"] <= start["latest"] < end["likely"]
            assert running["estimated_start"] is None
            assert running["estimated_end"]["likely"] < end["likely"]
            (listed, _) = (await server.admin.get("/api/v1/jobs?estimates=true")).json()["jobs"]
            assert listed["estimated_start"] is not None
            (listed, _) = (await server.admin.get("/api/v1/jobs")).json()["jobs"]
            assert (listed["estimated_start"], listed["statistics"]) == (None, None)

    run(scenario())
