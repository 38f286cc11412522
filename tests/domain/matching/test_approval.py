"""Which worker makes room when many wait for approval."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from windlass.domain.matching.workers import WorkerStatus, asked_from, gives_way
from windlass.domain.rows.records import Worker
from windlass.domain.values.ids import WorkerId

LIMIT = 12


def ask(pending: list[Worker], source: str, number: int) -> bool:
    """Lets one more worker ask; returns whether it waits now."""
    reason = asked_from(source)
    if len(pending) >= LIMIT:
        going = gives_way(pending, reason, 0)
        if going is None:
            return False
        pending.remove(going)
    status = int(WorkerStatus.PENDING_APPROVAL)
    pending.append(
        Worker(
            WorkerId(number), f"w{number}", 1, 0, status, number, 0, 1, "{}", "{}", None, reason, 0
        )
    )
    return True


@given(st.lists(st.sampled_from("abcde"), max_size=80), st.sampled_from("abcde"))
def test_whoever_asks_gets_a_fair_share_of_the_places(sources: list[str], late: str) -> None:
    pending: list[Worker] = []
    for number, source in enumerate(sources, 1):
        ask(pending, source, number)
        assert len(pending) <= LIMIT
    number = 1_000
    while ask(pending, late, number) and number < 1_000 + 2 * LIMIT:
        number += 1
    assert number < 1_000 + 2 * LIMIT, "it may not push out its own for ever"
    held = Counter(worker.reason for worker in pending)
    assert held[asked_from(late)] >= max(held.values()) - 1
