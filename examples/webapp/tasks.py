"""What happens to an order after the request that placed it."""

import psycopg

import windlass

PAY = "UPDATE orders SET state = 'paid' WHERE id = %s AND state = 'placed' RETURNING reference"


@windlass.task(queue="orders", secrets="DATABASE_URL", retries=3)
def process_order(order: int) -> str:
    """Charges an order once, however often it is tried: the state says whether it was."""
    with psycopg.connect(windlass.current().secret("DATABASE_URL")) as connection:
        row = connection.execute(PAY, [order]).fetchone()
    return "paid before" if row is None else f"paid {row[0]}"
