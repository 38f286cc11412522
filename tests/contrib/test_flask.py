"""The Flask extension: one client for all threads of an application, with its settings."""

import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor  # noqa: TID251 - Flask has threads
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

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


@pytest.fixture
def nobody() -> str:
    """An address where nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


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


def test_with_a_spool_in_the_settings_jobs_wait_that_no_server_takes(
    tmp_path: Path, nobody: str
) -> None:
    queue = Windlass()
    settings = {"WINDLASS_SERVER": nobody, "WINDLASS_TOKEN": "t", "WINDLASS_TIMEOUT": "1s"}
    with app_with(queue, **settings).app_context():
        with pytest.raises(windlass.Unreachable):
            queue.submit("shell", argv=["true"])
        queue.client.close()
    spooling = app_with(queue, **settings, WINDLASS_SPOOL=str(tmp_path / "spool"))
    with spooling.app_context():
        with pytest.raises(Conflict, match="it has no id yet"):
            _ = queue.submit("shell", argv=["true"]).id
        queue.client.close()


def test_a_submission_takes_no_longer_than_the_settings_say() -> None:
    queue = Windlass()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"http://127.0.0.1:{silent.getsockname()[1]}"
        with app_with(
            queue, WINDLASS_SERVER=address, WINDLASS_TOKEN="t", WINDLASS_TIMEOUT=0.5
        ).app_context():
            with pytest.raises(windlass.Unreachable, match=r"0\.5 s"):
                queue.submit("shell", argv=["true"])
            queue.client.close()
