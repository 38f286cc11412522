"""`make webapp`: one command starts the shop, and its orders are carried out."""

import os

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
        for one, reference in ((order, "A-1"), (later, "A-3")):
            shown = {}
            while shown.get("state") != "paid" or shown.get("result") is None:
                shown = shop.get(f"/orders/{one['id']}").json()
            assert shown["result"] == f"paid {reference}"
