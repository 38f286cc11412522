"""The Flask extension: one client for all threads of an application, with its settings."""

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor  # noqa: TID251 - Flask has threads
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from flask import Flask

import windlass
from windlass.contrib.flask import Windlass
from windlass.domain.values.errors import Conflict


class Refusing(HTTPServer):
    """A server that refuses everything, and keeps the tokens that it was sent."""

    def __init__(self) -> None:
        self.tokens: list[str | None] = []
        super().__init__(("127.0.0.1", 0), _Refuses)


class _Refuses(BaseHTTPRequestHandler):
    server: Refusing

    def do_GET(self) -> None:
        self.server.tokens.append(self.headers["Authorization"])
        self.send_response(403)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def refusing() -> Iterator[Refusing]:
    with Refusing() as server:
        thread = threading.Thread(target=server.serve_forever)  # noqa: TID251 - not our server
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def app_with(queue: Windlass, **settings: object) -> Flask:
    app = Flask(__name__)
    app.config.update(settings)
    queue.init_app(app)
    return app


def test_the_settings_of_the_application_count(refusing: Refusing) -> None:
    queue = Windlass()
    address = f"http://127.0.0.1:{refusing.server_port}"
    with app_with(queue, WINDLASS_SERVER=address, WINDLASS_TOKEN="secret").app_context():
        with pytest.raises(windlass.ServerError):
            queue.client.job(1).info()
        queue.client.close()
    assert refusing.tokens[0] == "Bearer secret"


def test_one_client_serves_all_threads_of_an_application() -> None:
    queue = Windlass()
    one, other = (app_with(queue, WINDLASS_SERVER="http://127.0.0.1:9") for _ in range(2))

    def client_in(app: Flask) -> windlass.Client:
        with app.app_context():
            return queue.client

    with ThreadPoolExecutor(4) as threads:
        found = set(threads.map(client_in, [one] * 16))
    assert found == {client_in(one)}
    assert client_in(other) not in found


def test_a_client_that_is_given_is_used_and_a_foreign_application_is_refused() -> None:
    with windlass.Client.embedded(":memory:", workers=0) as client:
        queue = Windlass(client=client)
        with app_with(queue).app_context():
            job = queue.submit("shell", argv=["true"])
            assert client.job(job.id).info().task == "shell"
    queue = Windlass()
    with Flask(__name__).app_context(), pytest.raises(Conflict, match="init_app"):
        _ = queue.client
