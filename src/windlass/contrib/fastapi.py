"""Windlass in a FastAPI application: what `starlette` offers, and the client as a dependency.

```python
from windlass.contrib.fastapi import ClientDep, WindlassLifespan

app = FastAPI(lifespan=WindlassLifespan())


@app.post("/resize")
async def resize(photo: int, windlass: ClientDep) -> dict[str, int]:
    return {"job": (await windlass.submit(resize_photo, photo)).id}
```
"""

from typing import Annotated

from windlass.contrib.starlette import WindlassApi, WindlassLifespan, client_of
from windlass.domain.values.errors import needs
from windlass.front import AsyncClient

with needs("fastapi"):
    from fastapi import Depends
    from starlette.requests import HTTPConnection


def get_client(connection: HTTPConnection) -> AsyncClient:
    """Returns the application's client, as a dependency."""
    return client_of(connection)


ClientDep = Annotated[AsyncClient, Depends(get_client)]

__all__ = ["ClientDep", "WindlassApi", "WindlassLifespan", "client_of", "get_client"]
