"""What strangers cannot do with the sign-in of browsers: make a server ask its provider at will."""

import asyncio
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from tests.server.sign_in.browser import sign_in
from tests.server.sign_in.conftest import Setting
from tests.support.running import run
from tests.support.running_server import NO_TLS, RunningServer, error_of
from windlass.domain.access.http_limits import HttpLimits
from windlass.domain.config import Config
from windlass.domain.values.errors import TooManyRequests
from windlass.server.connections.refusals import Reason
from windlass.server.sign_in import code_flow, states
from windlass.server.sign_in.code_flow import SignInRate

COOKIE = "windlass_sign_in"
PROXY = Config(http=HttpLimits(trusted_proxies=("127.0.0.1",), sign_ins_per_minute=3))


async def _begun(server: RunningServer) -> str:
    """The state that the server gives to anybody who begins."""
    async with httpx.AsyncClient(verify=NO_TLS) as browser:
        reply = await browser.get(f"{server.address}/auth/login")
        assert reply.status_code == 302, reply.text
        (state,) = parse_qs(urlsplit(reply.headers["Location"]).query)["state"]
        assert browser.cookies[COOKIE].startswith(f"{state}.")
        return state


async def _call_back(server: RunningServer, state: str, **headers: str) -> int:
    """The status of a callback of somebody who makes up a cookie that fits the state.

    The provider is stopped: 503 says that the server has tried to ask it, 401 that it has not.
    """
    jar = {COOKIE: f"{state}.{'n' * 43}.{'v' * 43}./"}
    async with httpx.AsyncClient(verify=NO_TLS, cookies=jar, headers=headers) as stranger:
        query = {"code": "made-up", "state": state}
        reply = await stranger.get(f"{server.address}/auth/callback", params=query)
        assert reply.status_code in (401, 429, 503), reply.text
        return reply.status_code


def test_a_callback_that_nobody_began_asks_the_provider_nothing(
    setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario() -> None:
        async with setting.server() as server:
            first, second = await _begun(server), await _begun(server)
            monkeypatch.setattr(states, "LIFETIME_SECONDS", -1)
            old = await _begun(server)
            setting.provider.stop()
            other = first[:-2] + ("A" if first[-2] != "A" else "B") + first[-1]
            for made_up in ("s" * 43, "!" * 43, other, old, first[::-1]):
                assert await _call_back(server, made_up) == 401, made_up
            assert await _call_back(server, first) == 503
            assert await _call_back(server, first) == 401  # it counts once
            # The last character has two bits to spare, so others stand for the same state.
            letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
            place = letters.index(first[-1])
            for twin in letters[place - place % 4 :][:4]:
                assert await _call_back(server, first[:-1] + twin) == 401, twin
            assert await _call_back(server, second) == 503

    run(scenario())


def test_a_state_of_another_store_does_not_count(setting: Setting) -> None:
    async def scenario() -> None:
        async with setting.server() as server:
            state = await _begun(server)
        async with setting.server() as server:
            await _begun(server)
            setting.provider.stop()
            assert await _call_back(server, state) == 401

    run(scenario())


def test_another_server_of_the_store_finishes_a_sign_in(setting: Setting, tmp_path: Path) -> None:
    async def scenario() -> None:
        store = f"sqlite://{tmp_path}/windlass.db"
        async with httpx.AsyncClient(verify=NO_TLS, timeout=30) as browser:
            async with setting.server(store) as server:
                back = await sign_in(browser, server.address, "alice")
            async with setting.server(store):
                reply = await browser.get(back.headers["Location"])
                assert reply.status_code == 302, reply.text

    run(scenario())


def test_an_address_signs_in_only_so_often_and_others_are_served(setting: Setting) -> None:
    async def scenario() -> None:
        async with setting.server(config=PROXY) as server:
            async with httpx.AsyncClient(verify=NO_TLS, base_url=server.address) as client:

                async def login(address: str) -> httpx.Response:
                    return await client.get("/auth/login", headers={"X-Forwarded-For": address})

                replies = [await login("203.0.113.7") for _ in range(7)]  # a minute may begin
                assert replies[0].status_code == 302
                refused = [reply for reply in replies if reply.status_code == 429]
                assert refused
                assert error_of(refused[0])["code"] == "too_many_requests"
                assert 1 <= int(refused[0].headers["Retry-After"]) <= 60
                assert (await login("203.0.113.8")).status_code == 302
            made_up = {"X-Forwarded-For": "203.0.113.9"}
            statuses = [await _call_back(server, "s" * 43, **made_up) for _ in range(7)]
            assert statuses[0] == 401
            assert 429 in statuses

    run(scenario())


class _Clock:
    """A clock that the test moves."""

    now = 60_000_000

    def now_ms(self) -> int:
        return self.now

    async def sleep_ms(self, ms: int) -> None:
        raise NotImplementedError


def test_the_limit_is_of_each_minute_and_remembers_few_addresses(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(code_flow, "REMEMBERED", 10)
    clock, refusals = _Clock(), list[Reason]()
    rate = SignInRate(2, refusals.append, clock)
    for _ in range(2):
        rate.enter("a")
    with pytest.raises(TooManyRequests):
        rate.enter("a")
    for number in range(50):
        rate.enter(f"other {number}")
    assert len(rate._counts) == 10
    clock.now += 60_000
    rate.enter("a")
    assert refusals == [Reason.SIGN_INS]


def test_only_some_codes_are_redeemed_at_once() -> None:
    async def scenario() -> None:
        rate = SignInRate(1, lambda _: None, _Clock())
        done = asyncio.Event()

        async def redeem() -> None:
            with rate:
                await done.wait()

        waiting = [asyncio.create_task(redeem()) for _ in range(code_flow.MAX_AT_ONCE)]
        await asyncio.wait(waiting, timeout=0)
        with pytest.raises(TooManyRequests):
            await redeem()
        done.set()
        await asyncio.gather(*waiting)
        await redeem()

    run(scenario())
