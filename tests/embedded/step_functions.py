"""Functions with durable steps, for the tests of embedded clients."""

import asyncio
import os
import signal
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import windlass


def note(path: str, text: str) -> str:
    """Writes a line, so that a test sees how often this ran."""
    with Path(path).open("a") as file:
        file.write(f"{text}\n")
    return text


async def note_async(path: str, text: str) -> str:
    return note(path, text)


@windlass.task
def killed_after_a_step(path: str) -> list[str]:
    first = windlass.step("first", note, path, "first")
    if windlass.current().attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    second = windlass.step("second", note, path, text="second")
    return [first, second]


@windlass.task
async def killed_after_an_async_step(path: str) -> list[str]:
    first = await windlass.step_async("first", note_async, path, "first")
    if windlass.current().attempt == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return [first, await windlass.step_async("second", note, path, "second")]


@dataclass
class Order:
    number: int
    items: tuple[str, ...]


def load(number: int) -> Order:
    return Order(number, ("a", "b"))


@windlass.task
def typed_steps() -> str:
    order = windlass.step("load", load, 17)
    return f"{type(order).__name__} {order.number} {order.items!r}"


@windlass.task
def the_same_key_twice() -> None:
    for _ in range(2):
        windlass.step("k", os.getpid)


@windlass.task
def no_json() -> None:
    windlass.step("k", object)


@windlass.task
def an_async_function_in_a_plain_step(path: str) -> None:
    wrong: Any = note_async
    windlass.step("k", wrong, path, "x")


@windlass.task
def waits(path: str, timeout: str | None = None) -> Any:
    try:
        windlass.step("before", note, path, "before")
        paid = windlass.wait_for("paid", timeout=timeout)
        windlass.sleep("10ms")
        return [paid, windlass.step("after", note, path, "after")]
    finally:
        note(path, "finally")


@windlass.task
async def waits_async(path: str) -> Any:
    try:
        async with asyncio.TaskGroup() as group:
            paid = group.create_task(windlass.wait_for_async("paid"))
        await windlass.sleep_async(0.01)
        return paid.result()
    finally:
        note(path, "finally")


@windlass.task
def waits_twice() -> list[Any]:
    return [windlass.wait_for("paid"), windlass.wait_for("paid")]


@windlass.task
def asks() -> str:
    order = windlass.ask("Which order?", Order)
    return f"{order.number} {order.items!r}"


@windlass.task
async def asks_async() -> bool:
    return await windlass.ask_async("Ship it?", bool, timeout="1h", key="ship")


@windlass.task
def sends(path: str) -> None:
    windlass.send("paid", {"by": "job"})
    windlass.step("sent", note, path, "sent")
    windlass.sleep("1ms")


@windlass.task
def stores_a_secret() -> str:
    value = windlass.step("k", lambda: windlass.current().secret("PASSWORD"))
    return "masked" if "hunter2" not in value else "told"


@windlass.task(idle_timeout="1s", retries=0)
def works_silently(heartbeats: bool) -> str:
    for _ in range(22):
        if heartbeats:
            windlass.current().heartbeat()
        time.sleep(0.1)  # noqa: TID251 - a job that writes nothing
    return "done"


@windlass.task
def blocked_until_canceled(path: str) -> None:
    windlass.current().progress(3, total=10, text="halfway there")
    try:
        time.sleep(1000)  # noqa: TID251 - until it is canceled
    except windlass.Canceled:
        note(path, "Canceled")
        raise


@windlass.task
async def awaits_until_canceled(path: str) -> None:
    windlass.current().progress(0.5)
    try:
        await asyncio.sleep(1000)  # noqa: TID251 - until it is canceled
    except asyncio.CancelledError:
        note(path, f"CancelledError {windlass.current().canceled}")
        raise


@windlass.task
def swallows_errors() -> str:
    try:
        windlass.wait_for("never", timeout=0)
    except windlass.WaitTimeout as error:
        return str(error)
    return "no error"


@windlass.task
def waits_in_vain() -> None:
    windlass.wait_for("never", timeout=0)


def make_file() -> Path:
    path = windlass.current().scratch / "made.txt"
    path.write_text("made")
    return path


@windlass.task
def a_file_in_a_step() -> str:
    return windlass.step("make", make_file).name


@windlass.task
def sends_a_set() -> None:
    windlass.send("paid", {1, 2})


@windlass.task
def waits_for_a_moment() -> list[object]:
    windlass.sleep(timedelta(milliseconds=1))
    try:
        windlass.wait_for("never", timeout=timedelta(milliseconds=1))
    except windlass.WindlassError as error:
        return [type(error).__name__, isinstance(error, TimeoutError)]
    return []


@windlass.task
def double(value: int) -> int:
    return 2 * value


def begin(value: int) -> windlass.JobHandle[int]:
    return double.submit(value)


@windlass.task
def children_in_steps() -> int:
    """Submits each child once, also if it runs again, and another one that takes their results."""
    one = windlass.step("one", begin, 1)
    more = windlass.step("more", double.map, [2, 3])
    windlass.sleep("10ms")
    return windlass.step("all", lambda: added.submit([one, *more]).id)


@windlass.task
async def children_in_async_steps() -> int:
    one = await windlass.step_async("one", double.submit_async, 1)
    await windlass.sleep_async("10ms")
    return (await added.submit_async([one])).id


@windlass.task
def added(values: list[Any]) -> int:
    return sum(values)


@windlass.task
def returns_its_child() -> int:
    return double.submit(1).output


@windlass.task
def returns_its_children() -> Any:
    return {"all": [*double.map([1, 2])]}


@windlass.task
def noted_double(path: str, number: int) -> int:
    note(path, f"double {number}")
    return 2 * number


@windlass.task
def refuse(text: str) -> None:
    raise ValueError(text)


@windlass.task
def asks_its_child(path: str) -> list[int]:
    note(path, "begin")
    child = windlass.step("child", noted_double.submit, path, 4)
    first = child.result()
    return [first, child.result()]


@windlass.task
async def asks_its_child_async(path: str) -> int:
    child = await windlass.step_async("child", noted_double.submit_async, path, 5)
    doubled: int = await child.result()
    return doubled


@windlass.task
def gathers(path: str, count: int) -> int:
    note(path, "begin")
    parts = windlass.step("parts", noted_double.map, [path] * count, list(range(count)))
    return sum(windlass.gather(*parts))


@windlass.task
async def gathers_async(path: str, count: int) -> int:
    parts = await windlass.step_async("parts", noted_double.map_async, [path] * count, range(count))
    return sum(await windlass.gather_async(*parts))


@windlass.task
def catches(text: str) -> list[str]:
    bad = windlass.step("bad", refuse.submit, text)
    try:
        bad.result()
    except windlass.JobFailed as error:
        caught = [str(error.exception_type), str(error.exception_message)]
    (told,) = windlass.gather(bad, return_exceptions=True)
    return [*caught, type(told).__name__]


@windlass.task
def lets_it_pass(text: str) -> None:
    windlass.step("bad", refuse.submit, text).result()


@windlass.task
def forgets_the_step(path: str) -> int:
    return noted_double.submit(path, 1).result()


@windlass.task
def gives_up(path: str) -> str:
    child = windlass.step("slow", noted_double.options(delay="1h").submit, path, 1)
    try:
        return str(child.result(timeout="50ms"))
    except windlass.WaitTimeout as error:
        return str(error)


@windlass.task
def asks_for_a_large_result() -> Any:
    return windlass.step("large", large.submit).result()


@windlass.task
def large() -> str:
    return "x" * (2 << 20)
