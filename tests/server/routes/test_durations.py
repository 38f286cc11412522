"""What a worker found out about media, over HTTP: the timeout of its attempt follows."""

import pytest

from tests.support.running import run
from tests.support.running_server import error_of, running_server
from windlass.domain.values.errors import Conflict
from windlass.ports.gateway import Holder


def test_a_duration_is_told_by_its_holder_and_answered_with_a_limit() -> None:
    async def scenario() -> None:
        async with running_server() as server:
            worker = await server.worker(
                metadata={"ffmpeg:available": True, "ffmpeg:encoders": ["libx264"]}
            )
            args = {"inputs": ["a.mp4"], "output": "b.mp4", "codec": "libx264"}
            number = await server.submit({"task": "ffmpeg", "args": args})
            (given,) = (await worker.sync(want=1)).jobs
            assert given.timeout_ms == 1_800_000
            holder = Holder(worker.id, worker.incarnation, number, given.attempt)
            assert await worker.gateway.measured(holder, 3_600_000) == 7_200_000
            assert (await server.show(number))["timeout_at"] is not None
            with pytest.raises(Conflict, match="not held"):
                await worker.gateway.measured(holder._replace(attempt=9), 1_000)
            own = await server.http(worker.token)
            path = f"{worker.path(number)}/duration?incarnation={worker.incarnation}"
            for body in ({"duration_ms": 0}, {"duration_ms": "long"}, {}):
                refused = await own.post(path, json=body)
                assert refused.status_code == 400
                assert "duration" in error_of(refused)["message"]

    run(scenario())
