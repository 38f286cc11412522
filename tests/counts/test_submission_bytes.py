"""What a submission of blocking code sends over HTTP, whatever the machine."""

import socketserver
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor  # noqa: TID251 - not our server
from contextlib import contextmanager

import windlass
from windlass.domain.job.job import JobSpec

REPLY = b'{"ids":[7],"applied":[true]}'
ANSWER = b"HTTP/1.1 201 Created\r\nContent-Length: %d\r\n\r\n%b" % (len(REPLY), REPLY)
JOB = JobSpec(task="t", args=[1])
HEAD_BYTES = 200  # of one request with a token of 32 characters
JOB_BYTES = 110  # of a submission of one job, with its key


class _Sizes(socketserver.StreamRequestHandler):
    """Answers submissions, and notes the sizes of each head and body."""

    def handle(self) -> None:
        found: list[tuple[int, int]] = self.server.found  # type: ignore[attr-defined]
        while line := self.rfile.readline():
            head, size = len(line), 0
            while (line := self.rfile.readline()).strip():
                head += len(line)
                name, _, text = line.partition(b":")
                size = int(text) if name.lower() == b"content-length" else size
            self.rfile.read(size)
            found.append((head + len(line), size))
            self.wfile.write(ANSWER)


@contextmanager
def noted() -> Iterator[tuple[str, list[tuple[int, int]]]]:
    """Gives the address of a server, and the sizes of the requests that come there."""
    found: list[tuple[int, int]] = []
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), _Sizes) as server:
        server.daemon_threads = True
        server.found = found  # type: ignore[attr-defined]
        with ThreadPoolExecutor() as pool:
            pool.submit(server.serve_forever, 0.01)
            try:
                yield f"http://127.0.0.1:{server.server_address[1]}", found
            finally:
                server.shutdown()


def test_a_submission_is_one_small_request() -> None:
    with noted() as (address, found), windlass.Client(address, "x" * 32) as client:
        client.submit(JOB)  # through the client's loop, which hears the server
        before = len(found)
        for _ in range(10):
            client.submit(JOB)
        sizes = found[before:]
    assert len(sizes) == 10
    assert max(head for head, _ in sizes) <= HEAD_BYTES, sizes
    assert max(body for _, body in sizes) <= JOB_BYTES, sizes
