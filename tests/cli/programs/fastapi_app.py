"""A FastAPI program: async views with the blocking and with the asynchronous client."""

import socket

import uvicorn
from fastapi import FastAPI

import windlass

client = windlass.Client()
asynchronous = windlass.AsyncClient()
shell = windlass.named("shell")
app = FastAPI()


@app.get("/blocking/{text}")
async def blocking(text: str) -> str:
    """Blocks the loop meanwhile, as careless programs do."""
    return client.submit(shell, argv=["echo", text]).wait(timeout=60).state


@app.get("/threads/{text}")
def in_thread(text: str) -> str:
    return shell.submit(argv=["echo", text]).wait(timeout=60).state


@app.get("/asynchronous/{text}")
async def in_loop(text: str) -> str:
    job = await asynchronous.submit("shell", argv=["echo", text])
    return (await job.wait(timeout=60)).state


@app.get("/tasks/{text}")
async def of_task(text: str) -> str:
    job = await shell.submit_async(argv=["echo", text])
    return (await job.wait(timeout=60)).state


if __name__ == "__main__":
    bound = socket.create_server(("127.0.0.1", 0))
    print(bound.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[bound])
