"""`Catalog`: what engines cache: shapes, queues, settings."""

from tests.store.conformance.driver import Driver
from tests.store.conformance.rows import event
from windlass.domain.rows.gaps import MARGIN, SHAPE_MARGIN, Gap, first_after
from windlass.domain.rows.records import QueueRow, ShapeRow
from windlass.domain.values.ids import ShapeId
from windlass.store.sql.transaction import WriteTx


def test_new_shapes_are_numbered_in_order(store: Driver) -> None:
    shapes = {"aa": b'{"queue":"live"}', "bb": '{"queue":"träge"}'.encode()}
    assert store.transact(lambda tx: tx.catalog.intern_shapes(shapes)) == {"aa": 1, "bb": 2}
    rows = [ShapeRow(ShapeId(1), "aa", shapes["aa"]), ShapeRow(ShapeId(2), "bb", shapes["bb"])]
    assert store.transact(lambda tx: tx.catalog.shapes_after(0)) == rows
    assert store.snapshot().shapes == tuple(rows)


def test_a_known_shape_keeps_its_id_and_uses_up_no_number(store: Driver) -> None:
    store.transact(lambda tx: tx.catalog.intern_shapes({"bb": b"{}"}))
    for _ in range(3):
        store.transact(lambda tx: tx.catalog.intern_shapes({"bb": b"{}"}))
    more = {"aa": b"{}", "bb": b"{}", "cc": b"{}"}
    told = store.transact(lambda tx: tx.catalog.intern_shapes(more))
    assert told == {"aa": 2, "bb": 1, "cc": 3}


def test_shapes_after_an_id(store: Driver) -> None:
    shapes = {f"{n:04}": b'{"n":%d}' % n for n in range(1, 1_201)}
    store.transact(lambda tx: tx.catalog.intern_shapes(shapes))
    told = store.transact(lambda tx: tx.catalog.shapes_after(1_197))
    assert told == [ShapeRow(ShapeId(n), f"{n:04}", b'{"n":%d}' % n) for n in (1_198, 1_199, 1_200)]
    assert store.transact(lambda tx: tx.catalog.shapes_after(1_200)) == []
    assert len(store.transact(lambda tx: tx.catalog.shapes_after(0))) == 1_200


def test_queues_are_put_and_replaced_by_name(store: Driver) -> None:
    rows = [QueueRow("live", 100, 0), QueueRow("batch", 10, 0), QueueRow("Żółw", -5, 1)]

    async def put(tx: WriteTx) -> None:
        for row in rows:
            await tx.catalog.put_queue(row)

    store.transact(put)
    store.transact(lambda tx: tx.catalog.put_queue(QueueRow("live", 7, 1)))
    expected = [QueueRow("batch", 10, 0), QueueRow("live", 7, 1), QueueRow("Żółw", -5, 1)]
    assert store.transact(lambda tx: tx.catalog.queues()) == expected
    assert store.snapshot().queues == tuple(expected)


def test_settings_are_set_and_replaced_by_name(store: Driver) -> None:
    before = store.transact(lambda tx: tx.catalog.meta())
    store.transact(lambda tx: tx.catalog.set_meta("heard_at", 2**45))
    store.transact(lambda tx: tx.catalog.set_meta("epoch", 1))
    store.transact(lambda tx: tx.catalog.set_meta("epoch", 0))
    told = store.transact(lambda tx: tx.catalog.meta())
    assert told == {**before, "heard_at": 2**45, "epoch": 0}
    assert store.snapshot().meta == tuple(sorted(told.items()))


def test_an_empty_store_has_an_empty_catalog(store: Driver) -> None:
    assert store.transact(lambda tx: tx.catalog.shapes_after(0)) == []
    assert store.transact(lambda tx: tx.catalog.queues()) == []
    assert store.transact(lambda tx: tx.catalog.meta()) == {}


def test_a_position_moves_on_only_from_where_it_is(store: Driver) -> None:
    def advance(source: int, to: int) -> bool:
        return store.transact(lambda tx: tx.catalog.advance_meta("read_seq", source, to))

    assert [advance(3, 5), advance(3, 9), advance(5, 7)] == [True, False, True]
    assert store.transact(lambda tx: tx.catalog.meta())["read_seq"] == 7


def test_ids_jump_to_where_nobody_has_been(store: Driver) -> None:
    """Those of every kind, also of what had none yet; events do with the next one."""
    store.transact(lambda tx: tx.jobs.allocate(3))

    async def jump(tx: WriteTx) -> Gap:
        gap = await tx.catalog.jump_ids(tx.now)
        await tx.catalog.put_gap(gap)
        await tx.log.jump(event(7)._replace(seq=gap.first))
        await tx.log.append([event(8)])
        return gap

    gap = store.transact(jump)
    assert gap.first == first_after(3, gap.at)
    assert (gap.last_job, gap.last_workflow, gap.last_event, gap.lost) == (0, 0, 0, 0)
    assert list(store.transact(lambda tx: tx.jobs.allocate(2))) == [gap.first + 1, gap.first + 2]
    assert list(store.transact(lambda tx: tx.workflows.allocate(1))) == [gap.first + 1]
    shapes = store.transact(lambda tx: tx.catalog.intern_shapes({"aa": b"{}"}))
    assert shapes == {"aa": SHAPE_MARGIN + 1}
    events = store.transact(lambda tx: tx.log.read(0, 10))
    assert [one.seq for one in events] == [gap.first, gap.first + 1]
    assert store.transact(lambda tx: tx.catalog.gaps()) == [gap]
    again = store.transact(jump)
    assert again.first >= gap.first + MARGIN
    assert again.last_event == gap.first + 1
    store.transact(lambda tx: tx.catalog.put_gap(again._replace(lost=1)))
    assert store.snapshot().gaps == (gap, again._replace(lost=1))


def test_times_of_events_that_are_there_and_of_the_oldest(store: Driver) -> None:
    store.transact(lambda tx: tx.log.append([event(1), event(2), event(3)]))
    assert set(store.transact(lambda tx: tx.log.times([2, 9]))) == {1, 2}
    assert set(store.transact(lambda tx: tx.log.times([]))) == {1}
