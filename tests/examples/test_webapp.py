"""`make webapp`: one command starts the shop, and its orders are carried out."""

import os
from typing import Any

import httpx

from tests.examples.conftest import ROOT, web


def test_an_order_and_its_job_are_committed_together_or_not_at_all() -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
    words = ("-m", "examples.webapp", "--port", "0")
    with web(words, environment, "Uvicorn running on") as shop:
        placed = shop.post("/orders", json={"reference": "A-1", "amount": 5})
        assert placed.status_code == 201
        order = placed.json()

        # Both fail after the job was submitted.
        assert shop.post("/orders", json={"reference": "A-2", "amount": 5_000}).status_code == 409
        assert shop.post("/orders", json={"reference": "A-1", "amount": 5}).status_code == 409

        later = shop.post("/orders", json={"reference": "A-3", "amount": 7}).json()
        assert later["job"] > order["job"] + 1  # an id was taken and given up with its order
        for number in (order["id"], later["id"]):
            assert shown_as(shop, number, "paid")["result"] is None
            sent = shop.post(f"/orders/{number}/packed", json={"parcel": f"P{number}"})
            assert sent.status_code == 202
            shown = shown_as(shop, number, "shipped")
            while shown["result"] is None:
                shown = shop.get(f"/orders/{number}").json()
            assert shown["result"] == f"shipped as P{number}"


def shown_as(shop: httpx.Client, number: int, state: str) -> dict[str, Any]:
    """Returns an order once it is in this state."""
    while True:
        shown: dict[str, Any] = shop.get(f"/orders/{number}").json()
        if shown["state"] == state:
            return shown
