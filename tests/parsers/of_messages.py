"""What comes over the network and from programs: requests, headers, answers, logs, records."""

import asyncio
import io
import re
import tempfile
from contextlib import redirect_stdout
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Final, Literal
from uuid import UUID

import msgspec

from tests.parsers.parser import Parser, of_text
from windlass.cli.output.tables import print_table
from windlass.cli.output.text import escape, escape_json, escape_line, escape_log
from windlass.client.calls import Answer
from windlass.client.transport import error_of
from windlass.clock import RealClock
from windlass.domain.tasks.references import references_in, replaced, uploads_in
from windlass.domain.tasks.reported import unpack
from windlass.domain.values.errors import WindlassError
from windlass.operations.dispatch.binding import Binder, signature_of
from windlass.operations.dispatch.routes import Router
from windlass.server.app import ROUTES
from windlass.server.http.authentication import Hosts, bearer, check_media_type
from windlass.tasks.values.codec import Misfit
from windlass.tasks.values.compile import codec_for
from windlass.tasks.values.unions import same
from windlass.worker.agent.gpus import describe, parse_amd, parse_nvidia, visible
from windlass.worker.agent.metadata import VERSION, encoder_names
from windlass.worker.agent.state import StateDirectory
from windlass.worker.attempt import job_socket
from windlass.worker.attempt.files import find_files
from windlass.worker.attempt.secrets import Masker, load_secrets
from windlass.worker.keeper import client
from windlass.worker.keeper.record import boot_id

ANY_VALUE: Final = codec_for(
    datetime | date | time | timedelta | UUID | Decimal | bytes | Literal["r"] | dict[int, bytes]
    | list[datetime | timedelta | Decimal | bytes | str] | set[int] | tuple[str, int] | None
)  # fmt: skip
BINDERS: Final = [Binder(signature_of(route)) for route in ROUTES]
ROUTER: Final = Router(
    (route.method, route.path, binder) for route, binder in zip(ROUTES, BINDERS, strict=True)
)
CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
COLOURS: Final = re.compile(r"(\x1b\[[0-9;:]*m|[^\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f])*")
SECRETS: Final = ("hunter22", "aab", "abaa")


def _told(data: bytes) -> None:
    """Whatever a worker sends, what is shown is bounded and has no control characters."""
    try:
        json = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return
    for task in unpack(json):
        assert task.name.isprintable() and task.doc.isprintable()  # noqa: PT018 - both or neither
        assert not CONTROLS.search(msgspec.json.encode(task).decode())


def _values(data: bytes) -> None:
    """What is read by annotation comes back the same, and references are found in anything."""
    try:
        json = msgspec.json.decode(data)
    except (msgspec.MsgspecError, RecursionError):
        return
    assert len(list(references_in(json, "$file"))) >= len(list(uploads_in(json)))
    assert replaced(json, "$result", lambda job: {"$result": job}) == json
    value = ANY_VALUE.decode(json)
    assert same(ANY_VALUE.decode(ANY_VALUE.encode(value)), value), value


def _request(data: bytes) -> None:
    """The first byte chooses a route; a NUL divides the query from the body."""
    query, _, body = data[1:].partition(b"\0")
    BINDERS[(data or b"\0")[0] % len(BINDERS)].bind(query, body)


def _path(text: str) -> None:
    found = ROUTER.find(text)
    if found is not None:
        for binder in found.methods.values():
            binder.bind_path(found.values)


def _headers(data: bytes) -> None:
    """Lines of name and value, as uvicorn passes them on."""
    pairs = [line.partition(b": ")[::2] for line in data.split(b"\n")]
    headers = [(name.lower(), value) for name, value in pairs]
    token = bearer(headers)
    assert token is None or token == token.strip() != ""
    check_media_type(dict(headers), raw=True)
    for hosts in (Hosts(()), Hosts(["windlass.example"])):
        hosts.check(dict(headers))


def _answer(data: bytes) -> None:
    for status in (400, 404, 409, 500, 503):
        error = error_of(Answer(status, data))
        assert isinstance(error, WindlassError)
        str(error)


def _shown(text: str) -> None:
    assert not CONTROLS.search(escape(text))
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", escape_line(text))
    assert not CONTROLS.search(escape_json(text))


def _log(data: bytes) -> None:
    whole = "".join(escape_log([data]))
    assert COLOURS.fullmatch(whole), ascii(whole)
    for size in (1 + len(data) // 500, 7 + len(data) // 100):
        chunks = (data[n : n + size] for n in range(0, len(data), size))
        assert "".join(escape_log(chunks)) == whole


def _table(text: str) -> None:
    shown = io.StringIO()
    with redirect_stdout(shown):
        print_table(("id", "name", "state"), [(1, text, text)], "nothing")


def _mask(data: bytes) -> None:
    for size in (1 + len(data) // 500, 5 + len(data) // 100, max(len(data), 1)):
        masker = Masker(SECRETS)
        chunks = (data[n : n + size] for n in range(0, len(data), size))
        masked = b"".join(map(masker.feed, chunks)) + masker.flush()
        assert not any(secret.encode() in masked for secret in SECRETS)


def _glob(text: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a" / "b").mkdir(parents=True)
        for name in ("a/b/c.txt", "a/[x].log", "a" * 200):
            (Path(folder) / name).touch()
        found = asyncio.run(find_files(Path(folder), text, RealClock()))
        assert all(path.is_relative_to(folder) for _, path in found)


def _record(data: bytes) -> None:
    with tempfile.NamedTemporaryFile() as file:
        file.write(boot_id() + b"\n" + data)
        file.flush()
        noted = dict(client._read_record(Path(file.name)))
        client._find_leftovers(dict.fromkeys(list(noted)[:3], 0), "no such marker")


def _agent_state(data: bytes) -> None:
    with tempfile.TemporaryDirectory() as folder:
        for name in ("memory", "stopped"):
            (Path(folder) / name).write_bytes(data)
        state = StateDirectory(Path(folder))
        state.keep_token("wl_x", accepted=True)
        state.forget_stop()
        state.close()


def _secret_file(text: str) -> None:
    name, _, value = text.partition("=")
    load_secrets({f"WINDLASS_SECRET_{name}": value})
    load_secrets({}, [text])


def _gpus(text: str) -> None:
    for vendor, parse in (("nvidia", parse_nvidia), ("amd", parse_amd)):
        gpus = parse(text)
        describe(vendor, visible(gpus, text))


def _facts(text: str) -> None:
    encoder_names(text)
    VERSION.search(text)


def _requests() -> tuple[bytes, ...]:
    """A seed for each route: some of what it takes from the query, and an empty object."""
    seeds = []
    for place, route in enumerate(ROUTES):
        signature = signature_of(route)
        query = "&".join(f"{p.name}=1" for p in signature.query)
        seeds.append(bytes([place]) + query.encode() + b"\0{}")
    return tuple(seeds)


SYNC: Final = next(n for n, route in enumerate(ROUTES) if route.path.endswith("/sync"))

PARSERS: Final[tuple[Parser, ...]] = (
    Parser(
        "request",
        _request,
        (
            *_requests(),
            bytes([SYNC]) + b'\0{"incarnation":1,"seq":2,"held":[{"job":1,"attempt":1}],"want":1}',
        ),
        most=16_384,
    ),
    Parser(
        "path",
        of_text(_path),
        (
            b"/api/v1/jobs/12/artifacts/a/b",
            b"/api/v1/workers/1/jobs/2/attempts/3/log",
            b"//healthz/",
        ),
    ),
    Parser(
        "headers",
        _headers,
        (
            b"Authorization: Bearer wl_x\nHost: localhost:80\nOrigin: http://localhost:80",
            b"Origin: http://[\nHost: [::1",
            b"Content-Type: application/json; charset=utf-8\nContent-Length: 3",
            b"Origin: null\nHost: windlass.example",
            b"Authorization: bearer  \nTransfer-Encoding: x",
        ),
    ),
    Parser(
        "answer of a server",
        _answer,
        (
            b'{"error":{"code":"overloaded","message":"m","retry_after_ms":5}}',
            b'{"error":{"code":"invalid_input","message":"m","field":"f","got":[1],"unknown":true}}',
            b"<html>",
            b'{"error":"x"}',
            b'{"error":"\xff"}',
            b'{"error":{"code":"overloaded","message":"m","retry_after_ms":"x"}}',
            b"[" * 5_000,
        ),
    ),
    Parser(
        "values by annotation",
        _values,
        (
            b'{"$type":"date","$value":"2026-01-31"}',
            b'["2026-01-31T08:00:00+01:00[Europe/Berlin]","15m","PT1S","1e5","YWI=","r"]',
            b'{"$literal":{"$result":[{"$file":{"sha256":"a"}}]}}',
            b'"2026-01-31T08:00:00+00:00[../x]"',
            b"[" * 5_000,
        ),
        (Misfit,),
        most=8_192,
        floor=1.0,  # each text is tried as five types
    ),
    Parser(
        "job socket",
        job_socket.read_request,
        (b'{"jobs":[{"task":"shell","args":{"argv":["a"]}}]}', b'{"jobs":[{"task":"\xff"}]}'),
    ),
    Parser(
        "tasks that a worker tells of",
        _told,
        (
            b'[{"name":"a","path":"m:a","doc":"x","schema":{"type":"object"},"order":["b"]}]',
            b'[{"name":"\\u001b","path":""}]',
            b"[[[]]]",
        ),
    ),
    Parser(
        "text on a terminal",
        of_text(_shown),
        (b"\x1b]52;c;AA\x07", b"a\r\n\tb", "\u202e\x9b".encode()),
    ),
    Parser(
        "log", _log, (b"\x1b[1;31mred\x1b[0m", b"\x1b[2J\x1b", b"caf\xc3\xa9\xc2\x9b", b"\xff\r\n")
    ),
    Parser(
        "table",
        of_text(_table),
        (rb"x\[/]", b"[bold]a[/bold]", b"[link=x]", b"2026-01-02T03:04:05Z"),
        most=2_000,
        floor=1.0,
    ),
    Parser("masked log", _mask, (b"a hunter22 b", b"aabaab abaaabaa", b"hunte")),
    Parser(
        "glob",
        of_text(_glob),
        (b"**/*.txt", b"a/[!x]*", b"[z-a]", b"**/**/**/*", b"../*", b"a*a*a*a*b"),
        most=4_096,
        floor=1.0,
    ),
    Parser(
        "keeper's record",
        _record,
        (b"12 34\n56 78\n", b"1 " + b"9" * 5_000 + b"\n"),
        floor=1.0,
    ),
    Parser(
        "agent's state",
        _agent_state,
        (
            b'{"incarnation":3,"epoch":1,"token":"wl_a","accepted":true}',
            b'{"token":"\xff"}',
            b"[" * 9,
        ),
    ),
    Parser(
        "secret of a worker", of_text(_secret_file), (b"NAME=value", b"a/NAME=@/nowhere", b"A=@")
    ),
    Parser(
        "GPU list",
        of_text(_gpus),
        (
            b"0, GPU-1, NVIDIA A100, 40960, 535.1\n",
            b'{"card0": {"Unique ID": "0x1"}, "system": {}}',
            b'{"card1": 3, "system": 5}',
            "0, a, b, ²,c".encode(),
        ),
    ),
    Parser(
        "facts about programs",
        of_text(_facts),
        (b"ffmpeg version n6.1-static", b" V....D libx264  H.264 (codec h264)\n"),
    ),
)
