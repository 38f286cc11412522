"""Each part measures one promise of the dashboard in a browser."""

import asyncio
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import msgspec
from playwright.sync_api import Browser, Locator, Page, expect

from benchmarks.browser.main_thread import Recording, recorded
from benchmarks.fill import FINISHED, QUEUED, Group, fill_sqlite, task_shapes
from tests.dashboard.farm import WIDE, Farm, running_farm, settle, sign_in
from windlass.clock import RealClock
from windlass.store.sql.transaction import WriteTx
from windlass.store.sqlite.store import SqliteStore

WHEEL_PX: Final = 700  # a screen of rows
PATIENCE_MS: Final = 120_000
FILES: Final = """
() => ["resource", "navigation"]
  .flatMap((kind) => performance.getEntriesByType(kind))
  .filter((one) => !/[/](api|auth)[/]/.test(one.name))
  .reduce((sum, one) => sum + one.encodedBodySize, 0)
"""


class Figure(msgspec.Struct, frozen=True):
    """What was measured, and what it may be."""

    name: str
    value: float
    unit: str
    bound: float | None = None
    note: str = ""

    @property
    def is_kept(self) -> bool:
        return self.bound is None or self.value <= self.bound


class Sizes(msgspec.Struct, frozen=True):
    """How much of everything."""

    jobs: int = 1_000_000
    wheels: int = 600
    nodes: int = 100_000
    lines: int = 30_000_000


def fill(data: Path, jobs: int) -> None:
    """Fills the store of a farm that has not started yet; most jobs have ended."""
    path = data / "windlass.db"
    data.mkdir(parents=True)
    asyncio.run(SqliteStore.open(path, RealClock()).close())
    shapes, few = task_shapes(10), min(2_000, jobs // 10)
    groups = [Group(jobs - few, shapes, FINISHED), Group(few, shapes, QUEUED)]
    fill_sqlite(path, groups, RealClock().now_ms())
    asyncio.run(_catch_up(path))


async def _catch_up(path: Path) -> None:
    """Lets no loop begin with millions of events, which a store that grew never leaves it."""
    store = SqliteStore.open(path, RealClock())

    async def skip(tx: WriteTx) -> None:
        newest = await tx.log.newest()
        await tx.series.move_on(await tx.series.position(), newest)
        await tx.statistics.move_on(await tx.statistics.position(), newest)

    await store.transact(skip)
    await store.close()


@contextmanager
def signed_in(browser: Browser, farm: Farm) -> Iterator[Page]:
    """A page of a fresh browser profile."""
    context = browser.new_context(viewport=WIDE, locale="en-US")
    context.set_default_timeout(PATIENCE_MS)
    page = context.new_page()
    sign_in(page, farm, farm.token)
    yield page
    context.close()


def scroll(page: Page, table: Locator, wheels: int) -> None:
    """Turns the wheel a screen at a time: through what is there, then as pages arrive."""
    table.hover()
    for _ in range(wheels):
        page.mouse.wheel(0, WHEEL_PX)
        # Once the frame is drawn, as for a person who turns it quickly.
        page.evaluate("new Promise((done) => requestAnimationFrame(() => done()))")


def first_view(browser: Browser, farm: Farm) -> list[Figure]:
    """What a browser without a cache gets before it shows the overview."""
    with signed_in(browser, farm) as page:
        page.goto(farm.address)
        settle(page)
        kilobytes = page.evaluate(FILES) / 1000
    return [Figure("first view, compressed", kilobytes, "kB", 300)]


def long_list(browser: Browser, farm: Farm, sizes: Sizes) -> list[Figure]:
    """Scrolls the list of all jobs down, and back up."""
    with signed_in(browser, farm) as page:
        page.goto(f"{farm.address}/jobs")
        settle(page)
        table = page.get_by_role("table", name="Jobs")
        with recorded(browser, page) as recording:
            scroll(page, table, sizes.wheels)
            rows = int(table.get_attribute("aria-rowcount") or 0)
            page.keyboard.press("Home")
            page.locator("[data-table]").evaluate("(box) => box.scrollTo(0, 0)")
            page.locator("[aria-rowindex='2'] a").first.wait_for()
    return _of_tasks("scrolling", recording, f"through {rows:,} rows")


def _of_tasks(name: str, recording: Recording, note: str) -> list[Figure]:
    longest = recording.longest()
    return [
        Figure(f"{name}: tasks over 50 ms", recording.over(50), "", 0, note),
        Figure(f"{name}: longest task, processor", longest.cpu, "ms", 50),
        Figure(
            f"{name}: longest task, by the clock", longest.wall, "ms", None, "with what else ran"
        ),
    ]


def large_graph(browser: Browser, farm: Farm, sizes: Sizes) -> list[Figure]:
    """Opens the graph of a workflow, then one of its groups."""
    width = 1_000
    jobs: list[dict[str, Any]] = [
        {"task": "shell", "args": {"argv": ["true"]}, "name": f"step-{n}",
         **({"after": [f"step-{n - width}"]} if n >= width else {"unblock": "manual"})}
        for n in range(sizes.nodes)
    ]  # fmt: skip
    body = {"jobs": jobs, "workflow": {"name": "large"}}
    reply = farm.http.post("/api/v1/jobs", json=body, timeout=300)
    assert reply.status_code == 201, reply.text
    workflow = reply.json()["workflow"]
    with signed_in(browser, farm) as page:
        page.goto(f"{farm.address}/workflows")  # the code of the page is loaded, the graph is not
        settle(page)
        group = page.get_by_role("button", name=re.compile("^Layers? 0")).first
        opened = _until(page, page.get_by_role("link", name="large", exact=True).first, group)
        grown = _until(page, group, page.get_by_role("button", name="Layer 0", exact=True))
    farm.http.post(f"/api/v1/workflows/{workflow}/cancel", json={}, timeout=300)
    return [
        Figure("graph until it answers, cold", opened, "s", 2, f"{sizes.nodes:,} nodes"),
        Figure("a group of it opens", grown, "s", 2),
    ]


def large_log(browser: Browser, farm: Farm, sizes: Sizes) -> list[Figure]:
    """Opens the log of a job at its end, and searches all of it."""
    script = f'seq {sizes.lines} | sed "s/.*/line & of a rather long log/"'
    job = farm.submit("sh", "-c", script, timeout="1h")
    while (shown := farm.http.get(f"/api/v1/jobs/{job}").json())["log"]["state"] != "committed":
        farm.http.get(f"/api/v1/jobs/{job}/wait", params={"timeout": 20})
    megabytes = shown["log"]["bytes"] / 1_000_000
    with signed_in(browser, farm) as page:
        page.goto(f"{farm.address}/jobs/{job}")
        page.get_by_role("heading", level=1, name=f"Job {job}").wait_for()
        log = page.get_by_role("log")
        last = log.get_by_text(f"line {sizes.lines} of")
        opened = _until(page, page.get_by_role("tab", name="Log"), last)
        search = page.get_by_role("search", name="Search the log")
        wanted = sizes.lines - 5
        search.get_by_role("searchbox").fill(f"line {wanted} of")
        found = log.locator(f'[data-line="{wanted}"][data-marked]')
        searched = _until(page, search.get_by_role("button", name="Find"), found)
    return [
        Figure("log until it is shown", opened, "s", 1, f"{megabytes:,.0f} MB"),
        Figure("text at its end is found", searched, "s"),
    ]


def _until(page: Page, clicked: Locator, shown: Locator) -> float:
    """Returns the seconds from a click until something is there."""
    clicked.wait_for()
    began = page.evaluate("performance.now()")
    clicked.click()
    expect(shown).to_be_visible(timeout=PATIENCE_MS)
    return float(page.evaluate("performance.now()") - began) / 1000


@contextmanager
def large_farm(jobs: int) -> Iterator[Farm]:
    """A server with a worker over a store with so many jobs; logs may be of any size."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        fill(data, jobs)
        with running_farm(data, "--set", "log_limit=0") as farm:
            yield farm
