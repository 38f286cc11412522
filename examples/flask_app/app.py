"""Submits a job for each request; one client serves all threads."""

from flask import Flask, request
from flask.typing import ResponseReturnValue

from examples.flask_app.tasks import count_words
from windlass.contrib.flask import Windlass

queue = Windlass()


def create_app() -> Flask:
    """Returns the application; settings begin with WINDLASS_."""
    app = Flask(__name__)
    app.config.from_prefixed_env("FLASK")
    queue.init_app(app)

    @app.post("/count")
    def start() -> ResponseReturnValue:
        return {"job": queue.submit(count_words, request.form["text"]).id}, 202

    @app.get("/count/<int:job>")
    def result(job: int) -> ResponseReturnValue:
        return {"words": queue.client.job(job).result(timeout=20)}

    return app
