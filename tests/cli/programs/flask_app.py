"""A Flask program with one client for all its threads, made before anything else."""

from flask import Flask
from werkzeug.serving import make_server

import windlass

client = windlass.Client()
app = Flask(__name__)


@app.get("/echo/<text>")
def echo(text: str) -> bytes:
    job = client.submit("shell", argv=["echo", text])
    job.wait(timeout=60)
    return b"".join(job.logs())


if __name__ == "__main__":
    server = make_server("127.0.0.1", 0, app, threaded=True)
    print(server.port, flush=True)
    server.serve_forever()
