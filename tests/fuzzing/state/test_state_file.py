"""One state file with many writers: refusals, lost answers, too many retries, malformed files."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.fuzzing.support.fault_proxy import fault_proxy
from tests.fuzzing.support.rig import KINDS_OF_BUCKETS, LostAnswer, Rig, Scripted, rigs
from tests.support.s3 import S3Server
from windlass.domain.values.errors import Conflict
from windlass_fuzz.buckets.bucket import ConcurrentWrite, PreconditionFailed
from windlass_fuzz.buckets.directory import DirectoryBucket
from windlass_fuzz.buckets.layout import state_key
from windlass_fuzz.state import rules
from windlass_fuzz.state.documents import BuildQueue, Entry, Schedule
from windlass_fuzz.state.state_file import UnreadableState

QUEUE = state_key("toy", "build-queue.json")
SCHEDULE = state_key("toy", "fuzzing-schedule.json")


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(DirectoryBucket(tmp_path / "bucket"))
    yield made
    made.close()


@pytest.fixture(params=KINDS_OF_BUCKETS)
def each(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Rig]:
    yield from rigs(request, tmp_path, request.param)


def adds(commit: str) -> Callable[[BuildQueue], BuildQueue]:
    def change(queue: BuildQueue) -> BuildQueue:
        return rules.enqueue_new(queue, [commit])

    return change


def schedules(commit: str) -> Callable[[Schedule], Schedule]:
    def change(schedule: Schedule) -> Schedule:
        return rules.add_to_schedule(schedule, commit)

    return change


async def overwriting(rig: Rig, key: str) -> None:
    """Returns a step that would replace the content of a file."""
    if key == QUEUE:
        await rig.pipeline.queue.update(lambda _: BuildQueue())
    else:
        await rig.pipeline.schedule.update(lambda _: ())


def document(rig: Rig, key: str) -> object:
    stored = rig.run(rig.bucket.get(key))
    assert stored is not None
    return json.loads(stored.body)


def test_files_have_exactly_the_described_shapes(each: Rig) -> None:
    async def work() -> None:
        await each.pipeline.queue.update(adds("c1"))
        await each.pipeline.schedule.update(schedules("c1"))
        await each.pipeline.state.update(lambda state: state._replace(last_checked_commit="c1"))

    each.run(work())
    queue = document(each, QUEUE)
    assert isinstance(queue, dict)
    assert {name: queue[name] for name in ("queue", "built", "failed")} == {
        "queue": ["c1"], "built": [], "failed": []
    }  # fmt: skip
    assert document(each, SCHEDULE) == [{"hash": "c1", "fuzz_count": 0}]
    state = document(each, state_key("toy", "state.json"))
    assert isinstance(state, dict)
    assert state["last_checked_commit"] == "c1"


def test_each_write_follows_from_the_one_before(each: Rig) -> None:
    async def work() -> list[int]:
        seqs = []
        for commit in ("c1", "c2", "c3"):
            await each.pipeline.schedule.update(schedules(commit))
            seqs.append((await each.pipeline.schedule.version()).seq)
        return seqs

    assert each.run(work()) == [1, 2, 3]


def test_a_content_that_comes_back_is_another_version(each: Rig) -> None:
    """Otherwise a writer that read the first version could overwrite the third."""

    async def work() -> None:
        await each.pipeline.schedule.update(lambda _: (Entry("a"),))
        first = await each.bucket.get(SCHEDULE)
        await each.pipeline.schedule.update(lambda _: (Entry("b"),))
        await each.pipeline.schedule.update(lambda _: (Entry("a"),))
        third = await each.bucket.get(SCHEDULE)
        assert first is not None
        assert third is not None
        assert json.loads(first.body) == json.loads(third.body)
        with pytest.raises(PreconditionFailed):
            await each.bucket.put_if(SCHEDULE, b"[]", expected=first.etag)

    each.run(work())


def test_a_schedule_whose_attributes_were_lost_goes_on_counting(each: Rig) -> None:
    """As after copying the bucket with a tool that ignores attributes."""

    async def work() -> int:
        for commit in ("c1", "c2", "c3"):
            await each.pipeline.schedule.update(schedules(commit))
        stored = await each.bucket.get(SCHEDULE)
        assert stored is not None
        await each.bucket.put_if(SCHEDULE, stored.body, expected=stored.etag)
        await each.pipeline.schedule.update(schedules("c4"))
        return (await each.pipeline.schedule.version()).seq

    assert each.run(work()) == 4


def test_nothing_is_written_where_nothing_changes(rig: Rig) -> None:
    pipeline = rig.another_pipeline("two", bucket := Scripted(rig.bucket))
    rig.run(pipeline.queue.update(adds("c1")))
    assert not rig.run(pipeline.queue.update(adds("c1"))).applied
    assert bucket.writes == 1


def test_another_writer_is_faster_and_both_changes_hold(rig: Rig) -> None:
    async def faster() -> None:
        await rig.pipeline.queue.update(adds("theirs"))

    pipeline = rig.another_pipeline("two", Scripted(rig.bucket, faster))
    assert rig.run(pipeline.queue.update(adds("ours"))).applied
    assert rig.run(rig.pipeline.queue.read()).queue == ("theirs", "ours")


def test_a_busy_server_is_asked_again(rig: Rig) -> None:
    pipeline = rig.another_pipeline(
        "two", Scripted(rig.bucket, ConcurrentWrite("409"), ConcurrentWrite("409"))
    )
    began = rig.clock.now_ms()
    assert rig.run(pipeline.queue.update(adds("c1"))).applied
    assert rig.clock.now_ms() - began >= 200  # it waited, longer each time


def test_a_write_whose_answer_was_lost_is_recognised(rig: Rig) -> None:
    pipeline = rig.another_pipeline("two", bucket := Scripted(rig.bucket, LostAnswer()))
    assert rig.run(pipeline.queue.update(adds("c1"))).applied
    assert bucket.writes == 1
    assert rig.run(rig.pipeline.queue.version()).seq == 1


def test_it_is_recognised_among_those_that_others_wrote_after_it(rig: Rig) -> None:
    """Otherwise one run would be counted twice."""
    rig.run(rig.pipeline.schedule.update(schedules("c1")))

    async def later() -> None:
        for commit in ("c2", "c3"):
            await rig.pipeline.schedule.update(schedules(commit))

    pipeline = rig.another_pipeline("two", Scripted(rig.bucket, LostAnswer(later)))
    rig.run(pipeline.schedule.update(lambda known: rules.count_fuzzing(known, "c1")))
    counts = {entry.hash: entry.fuzz_count for entry in rig.run(rig.pipeline.schedule.read())}
    assert counts == {"c1": 1, "c2": 0, "c3": 0}


def test_a_write_that_never_arrived_is_sent_again(rig: Rig) -> None:
    pipeline = rig.another_pipeline("two", bucket := Scripted(rig.bucket, "unsent"))
    assert rig.run(pipeline.queue.update(adds("c1"))).applied
    assert bucket.writes == 2


def test_three_retries_and_then_nothing_was_changed(rig: Rig) -> None:
    rig.run(rig.pipeline.queue.update(adds("c1")))
    before = rig.run(rig.bucket.get(QUEUE))
    pipeline = rig.another_pipeline(
        "two", bucket := Scripted(rig.bucket, *[ConcurrentWrite("409")] * 9)
    )
    with pytest.raises(Conflict, match="nothing was changed") as spent:
        rig.run(pipeline.queue.update(adds("c2")))
    assert QUEUE in str(spent.value)
    assert bucket.writes == 4
    assert rig.run(rig.bucket.get(QUEUE)) == before


def test_the_last_try_may_be_the_one_whose_answer_was_lost(rig: Rig) -> None:
    pipeline = rig.another_pipeline(
        "two", Scripted(rig.bucket, *[ConcurrentWrite("409")] * 3, LostAnswer())
    )
    assert rig.run(pipeline.queue.update(adds("c1"))).applied


@pytest.mark.parametrize(
    ("key", "body"),
    [
        (QUEUE, b"{"),
        (QUEUE, b"[]"),
        (QUEUE, b"\xff\xfe"),
        (QUEUE, b'{"queue": "c1"}'),
        (QUEUE, b'{"queue": ["c1", "c1"]}'),
        (QUEUE, b'{"queue": ["c1"], "built": ["c1"]}'),
        (QUEUE, b'{"queue": ["../../etc"]}'),
        (QUEUE, b'{"queue": [], "version": {"seq": "x"}}'),
        (SCHEDULE, b"{}"),
        (SCHEDULE, b'[{"fuzz_count": 1}]'),
        (SCHEDULE, b'[{"hash": "c1", "fuzz_count": -1}]'),
        (SCHEDULE, b'[{"hash": "c1"}, {"hash": "c1"}]'),
        (SCHEDULE, b"[" * 100_000),
    ],
)
def test_a_file_out_of_shape_is_kept_aside_and_never_overwritten(
    rig: Rig, key: str, body: bytes
) -> None:
    rig.run(rig.bucket.put(key, body))
    for _ in range(2):
        with pytest.raises(UnreadableState, match=key.replace(".", r"\.")) as found:
            rig.run(overwriting(rig, key))
        kept = rig.run(rig.bucket.get(found.value.copy))
        assert kept is not None
        assert kept.body == body
    left = rig.run(rig.bucket.get(key))
    assert left is not None
    assert left.body == body


def test_once_a_file_is_put_right_the_next_run_goes_on(rig: Rig) -> None:
    rig.run(rig.bucket.put(QUEUE, b"{"))
    with pytest.raises(UnreadableState):
        rig.run(rig.pipeline.queue.read())
    rig.run(rig.bucket.put(QUEUE, b'{"queue": ["c1"], "built": [], "failed": []}'))
    rig.run(rig.pipeline.queue.update(adds("c2")))
    assert rig.run(rig.pipeline.queue.read()).queue == ("c1", "c2")


def test_a_file_that_others_wrote_in_the_described_shape_is_taken_on(each: Rig) -> None:
    each.run(each.bucket.put(SCHEDULE, b'[{"hash": "c1", "fuzz_count": 2, "note": "x"}]'))
    each.run(each.pipeline.schedule.update(schedules("c2")))
    assert document(each, SCHEDULE) == [
        {"hash": "c1", "fuzz_count": 2, "note": "x"},
        {"hash": "c2", "fuzz_count": 0},
    ]


def test_fields_of_others_stay(rig: Rig) -> None:
    rig.run(rig.bucket.put(QUEUE, b'{"queue": [], "comment": {"by": "somebody"}}'))
    rig.run(rig.pipeline.queue.update(adds("c1")))
    queue = document(rig, QUEUE)
    assert isinstance(queue, dict)
    assert queue["comment"] == {"by": "somebody"}


@pytest.mark.parametrize(
    "script",
    [[409], [409, 409], [412], ["lost"], [409, "lost"], [503], [412, 409, "lost"]],
    ids=str,
)
def test_troubles_of_a_real_server_end_well(
    s3_server: S3Server, tmp_path: Path, script: list[int | str]
) -> None:
    from windlass_fuzz.buckets.s3 import S3Bucket

    made = Rig(DirectoryBucket(tmp_path))

    async def work() -> tuple[Schedule, int, int]:
        async with fault_proxy(s3_server.endpoint) as proxy:
            options = s3_server.options() | {"endpoint": proxy.address}
            name = s3_server.make_bucket("faults")
            bucket = S3Bucket(name, f"run-{hash(str(script)) & 0xFFFFFF}", **options)
            pipeline = made.another_pipeline("two", bucket)
            await pipeline.schedule.update(schedules("c1"))
            proxy.script = list(script)
            proxy.writes = 0
            await pipeline.schedule.update(lambda known: rules.count_fuzzing(known, "c1"))
            assert proxy.script == []
            version = await pipeline.schedule.version()
            return await pipeline.schedule.read(), version.seq, proxy.writes

    found, seq, writes = made.run(work())
    made.close()
    assert [(entry.hash, entry.fuzz_count) for entry in found] == [("c1", 1)]
    assert seq == 2
    assert writes == len(script) + ("lost" not in script)
