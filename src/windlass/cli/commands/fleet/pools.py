"""`windlass pools`: pools of workers that grow and shrink with the load."""

from pathlib import Path
from typing import Annotated, Any, Final

from cyclopts import App, Parameter

from windlass.cli.commands.suggestions import suggesting
from windlass.cli.options.connection import HERE, Connection
from windlass.cli.options.flags import Json, Many
from windlass.cli.output.tables import print_rows, print_table
from windlass.cli.output.text import BOLD, DIM, print_change, print_json, say
from windlass.domain.values.errors import InvalidInput
from windlass.domain.values.quantities import counted, readable_duration
from windlass.messages.pools import Plan, PlanTarget, PoolInfo, PoolPlan
from windlass.messages.workers import Changed

PoolName = Annotated[str, Parameter(help="The pool's name.")]

NO_POOLS: Final = "no pools: describe one in a file, then run `windlass pools apply FILE`"

_STATES: Final = ("requested", "starting", "online", "draining", "terminating")

pools = App(name="pools", help="Create, show, plan and delete pools of workers.")


@pools.command(name="list")
@pools.default
def list_pools(*, at: Connection = HERE, json: Json = False) -> None:
    """List pools with their workers, limits and this month's usage."""
    with at.client() as client:
        found = client.pools.list()
    rows = [
        (
            info.name,
            info.description["provider"],
            info.state,
            f"{len(info.workers)}/{info.description['max_workers']}",
            _counted(info),
            _seconds(info.seconds_this_month),
            _money(info.money_this_month),
            info.message,
        )
        for info in found
    ]
    columns = ("pool", "provider", "state", "workers", "of them", "this month", "cost", "message")
    print_rows(found, json, columns, rows, NO_POOLS)


@pools.command(name="show")
def show_pool(name: PoolName, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Show a pool: its configuration and its workers."""
    with suggesting(at), at.client() as client:
        info = client.pools.show(name)
    if json:
        print_json(info)
        return
    say(f"pool {info.name}: {info.state}", BOLD)
    described = info.description.items()
    given = [(k, _plain(v)) for k, v in described if v not in (None, [], {}) and k != "name"]
    print_table(("", ""), given, "")
    if info.message:
        say(f"\n{info.message}")
    rows = [
        (w.name, w.state, w.worker, w.machine, w.since, _idle(w.idle_seconds), w.reason)
        for w in info.workers
    ]
    say("")
    columns = ("worker", "state", "id", "machine", "since", "idle", "reason")
    print_table(columns, rows, "no workers now")


@pools.command(name="apply")
def apply_pools(file: Path, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Create or change the pools in a file; other pools stay as they are.

    Parameters
    ----------
    file
        A YAML or JSON file with one pool, or with several under `pools`.
    """
    applied = []
    with at.client() as client:
        for described in _described(file):
            name = str(described.get("name", ""))
            if not name:
                raise InvalidInput("name", "given for each pool", "nothing")
            applied.append(client.pools.apply(name, described))
    if json:
        print_json(applied)
        return
    for one in applied:
        say(f"{one.pool.name}: {'applied' if one.applied else 'nothing to do'}")


pools.command(apply_pools, name="put", show=False)


@pools.command(name="delete")
def delete_pool(name: PoolName, /, *, at: Connection = HERE, json: Json = False) -> None:
    """Delete a pool; its workers finish their jobs and leave."""
    with suggesting(at), at.client() as client:
        print_change(Changed(client.pools.delete(name)), json)


@pools.command(name="plan")
def plan_pools(*, what_if: Many = None, at: Connection = HERE, json: Json = False) -> None:
    """Show what the pools would do now, and why.

    Parameters
    ----------
    what_if
        workers=20 or target=60s: plan as if each pool had that many workers, or that target
        latency. Repeatable.
    """
    workers, target = _supposed(what_if or [])
    with at.client() as client:
        plan = client.pools.plan(workers, target)
    if json:
        print_json(plan)
        return
    _print_plan(plan)


@pools.command(name="costs")
def show_costs(*, month: str | None = None, at: Connection = HERE, json: Json = False) -> None:
    """Show what pools cost, by namespace and queue.

    Parameters
    ----------
    month
        A month such as 2026-11. Default: the current month.
    """
    with at.client() as client:
        found = client.pools.costs(month)
    if json:
        print_json(found)
        return
    rows = [
        (c.pool, c.namespace or "(idle)", c.queue, _seconds(c.seconds), _money(c.money))
        for c in found.costs
    ]
    columns = ("pool", "namespace", "queue", "time", "cost")
    print_table(columns, rows, f"no costs in {found.month}")
    if len(rows) > 1:
        money = _money(sum(cost.money for cost in found.costs))
        say(f"total {_seconds(sum(cost.seconds for cost in found.costs))}"
            f"{f', {money}' if money else ''}")  # fmt: skip


def _described(file: Path) -> list[dict[str, Any]]:
    """Reads the pools in a file."""
    from windlass.workflows.nodes import plain
    from windlass.workflows.reading import read_text

    try:
        content = file.read_bytes()
    except OSError as error:
        raise InvalidInput("file", f"a readable file ({error.strerror})", str(file)) from None
    tree = plain(read_text(content, str(file)))
    if not isinstance(tree, dict):
        raise InvalidInput("file", "a pool, or `pools` with several", type(tree).__name__)
    several = tree.get("pools")
    if several is None:
        return [tree]
    if len(tree) > 1:
        raise InvalidInput("file", "a pool, or `pools` alone", ", ".join(tree))
    if isinstance(several, dict):
        several = [{"name": name, **_as_pool(body)} for name, body in several.items()]
    if not isinstance(several, list):
        raise InvalidInput("pools", "a list of pools, or pools by name", several)
    return [_as_pool(one) for one in several]


def _as_pool(body: Any) -> dict[str, Any]:
    if not isinstance(body, dict):
        raise InvalidInput("pools", "a list of pools, or pools by name", body)
    return body


def _supposed(given: list[str]) -> tuple[int | None, str | None]:
    """Parses `--what-if`."""
    workers: int | None = None
    target: str | None = None
    for part in given:
        name, _, value = part.partition("=")
        if name == "workers" and value.isdecimal():
            workers = int(value)
        elif name == "target" and value:
            target = value
        else:
            raise InvalidInput("what_if", "workers=N or target=DURATION", part)
    return workers, target


def _print_plan(plan: Plan) -> None:
    for target in plan.targets:
        say(_target_line(target))
    if not plan.targets:
        say("nothing is queued or running")
    for one in plan.pools:
        say(_plan_line(one))
        if one.message:
            say(f"  provider: {one.message}")
    for name in plan.useless:
        say(f"pool {name} cannot run any of the waiting jobs: compare their requirements with "
            f"its architectures, tags and metadata")  # fmt: skip
    if not plan.pools:
        say(NO_POOLS, DIM)


def _target_line(target: PlanTarget) -> str:
    more = "more than " if target.more else ""
    work = (
        f"{more}{target.queued} queued ({_seconds(target.queued_seconds)}) + "
        f"{target.running} running ({_seconds(target.running_seconds)} left)"
    )
    slots = counted(target.slots, "slot")
    line = f"{target.jobs}: {work} / {slots} = {_latency(target.latency_seconds)}"
    if target.obstacle:
        line += f"\n  no worker can run it: {target.obstacle}"
    return line


def _plan_line(one: PoolPlan) -> str:
    have = counted(one.workers, "worker")
    would = f"start {one.start}" if one.start else "start none"
    if one.start < one.wanted:
        would += f" of {one.wanted}"
    slots = counted(one.slots, "slot")
    latency = f"{_seconds(one.work_seconds)} / {slots} = {_latency(one.latency_seconds)}"
    after = f", then {_latency(one.latency_after_seconds)}" if one.start else ""
    return (
        f"pool {one.pool}, {have}: {would}: {one.reason} "
        f"({latency}, target {_seconds(one.target_seconds)}{after})"
    )


def _plain(value: Any) -> Any:
    """Shows a field without quotes and brackets."""
    if isinstance(value, dict):
        return ", ".join(f"{name}={_plain(one)}" for name, one in value.items())
    if isinstance(value, list):
        return " ".join(map(str, value))
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else value


def _latency(seconds: float | None) -> str:
    return "never" if seconds is None else _seconds(seconds)


def _counted(info: PoolInfo) -> str:
    counts = {state: sum(w.state == state for w in info.workers) for state in _STATES}
    return ", ".join(f"{count} {state}" for state, count in counts.items() if count)


def _seconds(seconds: float) -> str:
    return readable_duration(round(seconds * 1000))


def _idle(seconds: float | None) -> str | None:
    return None if seconds is None else _seconds(seconds)


def _money(amount: float) -> str | None:
    return f"{amount:.4f}" if amount else None
