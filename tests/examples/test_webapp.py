"""`make webapp`: one command starts the shop, and its orders are carried out."""

import os
import re
import subprocess
from typing import Any

import httpx
import pytest

from examples.webapp.__main__ import Program
from tests.examples.conftest import ROOT, web
from tests.support.running import run

GUIDE = ROOT / "docs" / "guides" / "transactions.md"
MUCH = 200_000  # bytes: more than a pipe takes


def test_programs_of_the_shop_may_say_as_much_as_they_like(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code = f"print('ready', *['x' * 999] * {MUCH // 1000}, 'end', sep='\\n')"

    async def listen() -> None:
        async with Program(["-c", code], os.environ, "ready") as program:
            assert await program.is_ready() == "ready\n"
            await program.ended()

    run(listen())
    said = capsys.readouterr().out
    assert len(said) > MUCH
    assert said.endswith("end\n")


def test_a_program_of_the_shop_that_does_not_start_is_named() -> None:
    async def listen() -> None:
        async with Program(["-m", "windlass", "--version"], os.environ, "never said") as program:
            await program.is_ready()

    with pytest.raises(SystemExit, match="windlass ended before it was ready"):
        run(listen())


def test_an_order_and_its_job_are_committed_together_or_not_at_all() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    words = ("-m", "examples.webapp", "--port", "0")
    with web(words, environment, "Uvicorn running on") as shop:
        said = carry_out_guide(str(shop.base_url).rstrip("/"))
        assert said.startswith('{"id":1,"state":"placed","job":1,"result":null}')
        assert "violates check constraint" in said
        assert ended(shop, 1)["result"] == "shipped as P-1"

        assert shop.post("/orders/77/packed", json={"parcel": "P-9"}).status_code == 404

        # This one too fails after its job was submitted.
        assert shop.post("/orders", json={"reference": "A-1", "amount": 5}).status_code == 409

        later = shop.post("/orders", json={"reference": "A-3", "amount": 7}).json()
        assert later["job"] > 2  # ids were taken and given up with their orders
        assert shown_as(shop, later["id"], "paid")["result"] is None
        sent = shop.post(f"/orders/{later['id']}/packed", json={"parcel": "P-3"})
        assert sent.status_code == 202
        assert ended(shop, later["id"])["result"] == "shipped as P-3"


def carry_out_guide(address: str) -> str:
    """Runs the commands of the guide against this shop and returns what they say."""
    (commands,) = re.findall(r"^```sh\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)
    assert "http://127.0.0.1:8000" in commands
    done = subprocess.run(
        ["sh", "-eu", "-c", commands.replace("http://127.0.0.1:8000", address)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout


def ended(shop: httpx.Client, number: int) -> dict[str, Any]:
    """Returns an order once its job has ended."""
    while True:
        shown = shown_as(shop, number, "shipped")
        if shown["result"] is not None:
            return shown


def shown_as(shop: httpx.Client, number: int, state: str) -> dict[str, Any]:
    """Returns an order once it is in this state."""
    while True:
        shown: dict[str, Any] = shop.get(f"/orders/{number}").json()
        if shown["state"] == state:
            return shown
