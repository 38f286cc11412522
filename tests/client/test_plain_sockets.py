"""Submissions of blocking code go over plain sockets; what is unusual is sent again by the loop."""

import json
import ssl
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor  # noqa: TID251 - threads of a program
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import trustme

import windlass
from windlass.domain.job.job import JobSpec
from windlass.domain.values.errors import InvalidInput

JOB = JobSpec(task="shell", args={"argv": ["true"]})
REPLY = b'{"ids":[7],"applied":[true]}'
REFUSAL = b'{"error":{"code":"invalid_input","message":"no","field":"task","expected":"x","got":1}}'
LIMIT_S = 30

Answers = Callable[["_Handler"], None]


class _Handler(BaseHTTPRequestHandler):
    """Answers submissions, and notes what came over which connection."""

    protocol_version = "HTTP/1.1"
    server: "_Server"

    def _answer(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.seen.append((self.client_address[1], dict(self.headers), body))
        then = self.server.then.pop(0) if self.server.then else usual
        then(self)

    do_POST = _answer  # noqa: N815 - so it is called

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class _Server(ThreadingHTTPServer):
    """Answers as `then` says, and as usual once that is empty."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.seen: list[tuple[int, dict[str, str], Any]] = []
        self.then: list[Answers] = []

    @property
    def keys(self) -> list[str]:
        """The keys of the submissions that came, in their order."""
        return [body["key"] for _, _, body in self.seen]

    @property
    def connections(self) -> list[int]:
        """The connection of each submission."""
        return [connection for connection, _, _ in self.seen]


def usual(handler: _Handler, status: int = 201, body: bytes = REPLY, mark: str = "m-1") -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.send_header("Windlass-Mark", mark)
    handler.end_headers()
    handler.wfile.write(body)


def close_behind(handler: _Handler) -> None:
    """Closes the connection behind an answer, without saying so."""
    usual(handler)
    handler.close_connection = True


def hang_up(handler: _Handler) -> None:
    handler.close_connection = True


def break_off(handler: _Handler) -> None:
    handler.wfile.write(b"HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\n{")
    handler.close_connection = True


def in_chunks(handler: _Handler) -> None:
    head = b"HTTP/1.1 201 Created\r\nTransfer-Encoding: chunked\r\n\r\n"
    handler.wfile.write(head + b"%x\r\n%b\r\n0\r\n\r\n" % (len(REPLY), REPLY))


def say_too_much(handler: _Handler) -> None:
    head = b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n" % len(REPLY)
    handler.wfile.write(head + REPLY + b"HTTP/1.1 201 Created\r\n")


def be_full(handler: _Handler) -> None:
    usual(handler, 503, b'{"error":{"code":"overloaded","message":"m","retry_after_ms":1}}')


@contextmanager
def serving(server: _Server) -> Iterator[_Server]:
    with ThreadPoolExecutor() as pool:
        pool.submit(server.serve_forever, 0.01)
        try:
            yield server
        finally:
            server.shutdown()
            server.server_close()


@pytest.fixture
def server() -> Iterator[_Server]:
    with serving(_Server()) as made:
        yield made


@pytest.fixture
def client(server: _Server) -> Iterator[windlass.Client]:
    """A client that has heard the server: its first call always goes through the loop."""
    with windlass.Client(f"http://127.0.0.1:{server.server_port}", "secret") as made:
        made.submit(JOB)
        yield made


@contextmanager
def held_loop(client: windlass.Client) -> Iterator[None]:
    """Keeps the client's event loop busy."""
    begun, done = threading.Event(), threading.Event()

    async def hold() -> bool:
        begun.set()
        return done.wait(LIMIT_S)

    with ThreadPoolExecutor() as pool:
        held = pool.submit(client.run, hold())
        assert begun.wait(LIMIT_S)
        try:
            yield
        finally:
            done.set()
        assert held.result(), "something waited for the loop"


def test_submissions_do_not_need_the_event_loop(server: _Server, client: windlass.Client) -> None:
    with held_loop(client):
        assert client.submit(JOB).id == 7
        assert [job.id for job in client.submit_many([JOB])] == [7]
    assert len(set(server.keys)) == 3
    assert server.connections[1] == server.connections[2]
    _, headers, _ = server.seen[-1]
    assert headers["Authorization"] == "Bearer secret"
    assert headers["Windlass-Mark"] == "m-1"


def test_threads_have_connections_of_their_own(server: _Server, client: windlass.Client) -> None:
    both = threading.Barrier(2)

    def meet(handler: _Handler) -> None:
        both.wait(LIMIT_S)
        usual(handler)

    server.then = [meet, meet]
    with held_loop(client), ThreadPoolExecutor() as pool:
        assert [job.id for job in pool.map(client.submit, [JOB, JOB])] == [7, 7]
    assert len(set(server.connections[1:])) == 2


@pytest.mark.parametrize("answer", [hang_up, break_off, in_chunks, say_too_much, be_full])
def test_a_submission_without_a_usual_answer_is_repeated_under_its_key(
    server: _Server, client: windlass.Client, answer: Answers
) -> None:
    client.submit(JOB)
    server.then = [answer]
    assert client.submit(JOB).id == 7
    assert len(server.keys) == 4
    assert server.keys[2] == server.keys[3]
    assert client.submit(JOB).id == 7
    assert len(set(server.keys)) == 4


def test_an_idle_connection_that_was_closed_is_not_used(
    server: _Server, client: windlass.Client
) -> None:
    closed = threading.Event()
    server.then = [close_behind]
    finish = server.shutdown_request

    def note(request: Any) -> None:
        finish(request)
        closed.set()

    server.shutdown_request = note  # type: ignore[method-assign]
    client.submit(JOB)
    assert closed.wait(LIMIT_S)
    with held_loop(client):
        client.submit(JOB)
    assert len(set(server.keys)) == len(server.keys) == 3


def test_a_refusal_is_raised(server: _Server, client: windlass.Client) -> None:
    def refuse(handler: _Handler) -> None:
        usual(handler, 422, REFUSAL)

    server.then = [refuse, refuse]
    with pytest.raises(InvalidInput, match="task"):
        client.submit(JOB)


def test_nothing_is_sent_with_a_token_that_would_be_more_headers(server: _Server) -> None:
    with windlass.Client(f"http://127.0.0.1:{server.server_port}", "secret") as client:
        client.submit(JOB)
        client.asynchronous.transport.token = "secret\r\nX: y"
        with pytest.raises(ValueError, match="header"):
            client.submit(JOB)
    assert len(server.seen) == 1


def test_over_tls_the_certificate_is_checked(
    server: _Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = trustme.CA()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("localhost").configure_cert(context)
    secure = _Server()
    secure.socket = context.wrap_socket(secure.socket, server_side=True)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    monkeypatch.setenv("WINDLASS_TLS_CA", str(tmp_path / "ca.pem"))
    with serving(secure), windlass.Client(f"https://localhost:{secure.server_port}") as client:
        client.submit(JOB)
        with held_loop(client):
            client.submit(JOB)
            client.submit(JOB)
    assert secure.connections[1] == secure.connections[2]
