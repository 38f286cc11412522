"""Submits a job for each request: `uvicorn examples.fastapi_app.app:app`.

With DATABASE_URL set, it is a server of Windlass as well: workers and clients find its API below
`/windlass`.
"""

import os
from pathlib import Path

from fastapi import FastAPI

from examples.fastapi_app.tasks import shout
from windlass.contrib.fastapi import ClientDep, WindlassApi, WindlassLifespan

api = None
if "DATABASE_URL" in os.environ:
    data = Path(os.environ["WINDLASS_DATA"])
    api = WindlassApi(os.environ["DATABASE_URL"], f"file://{data / 'blobs'}", data)

app = FastAPI(lifespan=WindlassLifespan(os.environ.get("WINDLASS_SERVER"), api=api))
if api is not None:
    app.mount("/windlass", api)


@app.post("/shout")
async def start(text: str, windlass: ClientDep) -> dict[str, int]:
    """Submits a job."""
    return {"job": (await windlass.submit(shout, text)).id}


@app.get("/shout/{job}")
async def result(job: int, windlass: ClientDep) -> dict[str, str]:
    """Returns the result of a job, once it is there."""
    return {"text": await windlass.job(job).result(timeout=20)}
