"""The application: an order and its job are committed together, or neither is."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated, Any

import psycopg
from fastapi import Depends, FastAPI, HTTPException
from pydantic import BaseModel, Field

from examples.webapp.tasks import process_order
from windlass.contrib.fastapi import ClientDep, WindlassLifespan

TABLES = """
CREATE TABLE IF NOT EXISTS orders (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    reference text NOT NULL UNIQUE,
    amount integer NOT NULL CHECK (amount < 1000),
    state text NOT NULL DEFAULT 'placed',
    job bigint
)
"""

Connection = psycopg.AsyncConnection[tuple[Any, ...]]


@asynccontextmanager
async def tables(_app: FastAPI) -> AsyncIterator[None]:
    """Creates the shop's tables, beside those of the queue."""
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as connection:
        await connection.execute(TABLES)
    yield


app = FastAPI(title="Shop", lifespan=WindlassLifespan(then=tables))


async def transaction() -> AsyncIterator[Connection]:
    """A connection in a transaction: it commits if the request succeeds, else it is rolled back."""
    async with await psycopg.AsyncConnection.connect(os.environ["DATABASE_URL"]) as connection:
        yield connection


Transaction = Annotated[Connection, Depends(transaction, scope="function")]


class NewOrder(BaseModel):
    """What a customer sends."""

    reference: str = Field(min_length=1, max_length=100)
    amount: int


class Order(BaseModel):
    """What a customer sees."""

    id: int
    state: str
    job: int
    result: str | None = None


@app.post("/orders", status_code=201)
async def place(new: NewOrder, connection: Transaction) -> Order:
    """Places an order and submits its job; a failure after that takes the job back."""
    insert = "INSERT INTO orders (reference, amount) VALUES (%s, 0) RETURNING id"
    try:
        cursor = await connection.execute(insert, [new.reference])
        (number,) = await cursor.fetchone() or (0,)
        job = await process_order.submit_in_async(connection, number)
        update = "UPDATE orders SET amount = %s, job = %s WHERE id = %s"
        await connection.execute(update, [new.amount, job.id, number])
    except psycopg.IntegrityError as error:
        raise HTTPException(409, str(error.diag.message_primary)) from error
    return Order(id=number, state="placed", job=job.id)


class Parcel(BaseModel):
    """What the warehouse says."""

    parcel: str


@app.post("/orders/{number}/packed", status_code=202)
async def packed(
    number: int, parcel: Parcel, connection: Transaction, windlass: ClientDep
) -> dict[str, int]:
    """Tells the order's job that the warehouse has packed it.

    A signal waits for jobs to come, so one for an order that nobody has placed must not be sent.
    """
    await find_order(connection, number)
    sent = await windlass.send(f"packed {number}", {"parcel": parcel.parcel})
    return {"signal": sent.id}


@app.get("/orders/{number}")
async def show(number: int, connection: Transaction, windlass: ClientDep) -> Order:
    """Shows an order and what became of its job."""
    state, job = await find_order(connection, number)
    shown = await windlass.job(job).info()
    return Order(id=number, state=state, job=job, result=shown.result)


async def find_order(connection: Connection, number: int) -> tuple[str, int]:
    """Returns the state and the job of an order, or answers that there is none."""
    cursor = await connection.execute("SELECT state, job FROM orders WHERE id = %s", [number])
    row = await cursor.fetchone()
    if row is None:
        raise HTTPException(404, "no such order")
    state, job = row
    return state, job
