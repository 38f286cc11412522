"""What happens to an order after the request that placed it: charged, shipped, closed.

Each change is a step, so that a retry does not repeat it. Between them the job waits for the
warehouse, for days if need be, and holds no slot.
"""

import psycopg

import windlass

CHANGE = "UPDATE orders SET state = %s WHERE id = %s"


def set_state(order: int, state: str) -> str:
    """Writes down how far an order is."""
    with psycopg.connect(windlass.current().secret("DATABASE_URL")) as connection:
        connection.execute(CHANGE, [state, order])
    return state


@windlass.task(queue="orders", secrets="DATABASE_URL", retries=3)
def process_order(order: int) -> str:
    """Charges an order, waits until it is packed, and ships it."""
    windlass.step("charge", set_state, order, "paid")
    parcel = windlass.wait_for(f"packed {order}", timeout="7d")
    windlass.step("ship", set_state, order, "shipped")
    return f"shipped as {parcel['parcel']}"
