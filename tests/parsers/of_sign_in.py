"""What browsers, CI systems and identity providers send: tokens, cookies, states, claims."""

from typing import Any, Final

import msgspec

from tests.parsers.parser import Parser
from windlass.dashboard.page import choose
from windlass.domain.access.http_limits import HttpLimits
from windlass.domain.access.sign_in import check_claims, check_nonce, machine, person, read_sign_in
from windlass.server.connections.connection import Reception
from windlass.server.http.authentication import cookie_of
from windlass.server.live_pages import parse_topics
from windlass.server.sign_in.signatures import looks_signed, peek
from windlass.server.sign_in.states import BODY_BYTES, unpack

ISSUER: Final = "https://id.example"
SETTINGS: Final = read_sign_in({
    "oidc": {"issuer": ISSUER, "client_id": "web", "map": [{"group": "a", "role": "viewer"}]},
    "machines": [{"issuer": ISSUER, "audience": "ci", "claims": {"ref": ["main", "v*"]},
                  "role": "submitter", "namespaces": ["ci"]}],
})  # fmt: skip
PROXIED: Final = Reception(HttpLimits(trusted_proxies=("10.0.0.0/8", "::1")), lambda _: None)


def _token(data: bytes) -> None:
    token = data.decode("latin-1")  # as headers are
    if looks_signed(token):
        found = peek(token)
        assert isinstance(found.claims, dict)
        check_claims(found.claims, ISSUER, ("web", "ci"), 1e9)


def _claims(data: bytes) -> None:
    claims: dict[str, Any] = msgspec.json.decode(data, type=dict[str, Any])
    assert SETTINGS.oidc is not None
    check_claims(claims, ISSUER, ("web", "ci"), 1e9)
    machine(claims, SETTINGS.machines[0])
    person(claims, SETTINGS.oidc)
    check_nonce(claims, "n")


def _cookie(data: bytes) -> None:
    assert isinstance(cookie_of(data.decode("latin-1"), "windlass_session"), str)


def _state(data: bytes) -> None:
    body, mac = unpack(data.decode("latin-1"))
    assert len(body) <= BODY_BYTES
    assert not mac or len(body) == BODY_BYTES


def _proxy(data: bytes) -> None:
    assert PROXIED.is_proxy(data.decode("latin-1")) in (True, False)


def _topics(data: bytes) -> None:
    parse_topics(data.decode("latin-1").split(","))


def _prefers(data: bytes) -> None:
    assert choose(data, ("br", "gzip", "identity")) in ("br", "gzip", "identity")


PARSERS: Final = (
    Parser("topics of a page", _topics, (b"jobs,job:7", b"worker:0,x", b"job:" + b"9" * 40)),
    Parser("accepted encodings", _prefers, (b"gzip, br;q=0", b"*;q=0.5,,;", b"identity;q=0")),
    Parser(
        "signed token",
        _token,
        (b"eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiJodHRwczovL2lkLmV4YW1wbGUifQ.x", b"ey..", b"ey\xff.a.b"),
    ),
    Parser(
        "claims",
        _claims,
        (
            b'{"iss":"https://id.example","aud":["ci"],"exp":2e9,"sub":"a","ref":"v1","nonce":"n"}',
            b'{"iss":"https://id.example","aud":"web","exp":2000000000,"sub":"a","groups":["a"]}',
        ),
        (*Parser._field_defaults["refuses"], msgspec.MsgspecError),
    ),
    Parser("cookie", _cookie, (b"a=b; windlass_session=wl_x", b'windlass_session="\\x"; =')),
    Parser("state of a sign-in", _state, (b"s" * 43, b"-_" * 21, b"=")),
    Parser("address of a proxy", _proxy, (b"10.0.0.1", b"fe80::1%eth0", b"::ffff:10.0.0.1")),
)
